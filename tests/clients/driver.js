// What a program with node-postgres does; prints one line of JSON for each part, which the test compares.
const pg = require('pg')
const Cursor = require('pg-cursor')
const say = (name, value) => console.log(JSON.stringify([name, value]))

async function main() {
  const client = new pg.Client({ statement_timeout: 20000, application_name: 'program' })
  await client.connect()
  await client.query('CREATE TABLE kept (id serial PRIMARY KEY, n int, s text, j jsonb, a int[], at timestamptz, b bytea)')
  const insert = 'INSERT INTO kept (n, s, j, a, at, b) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id'
  const values = [7, "it's ä", { x: [1, null] }, [1, null, 3], new Date('2024-02-29T12:00:00.5Z'), Buffer.from([0, 255])]
  say('returning', (await client.query(insert, values)).rows)
  const read = await client.query({ name: 'one', text: 'SELECT * FROM kept WHERE id = $1', values: [1] })
  say('row', { ...read.rows[0], at: read.rows[0].at.toISOString(), b: [...read.rows[0].b] })
  say('fields', read.fields.map((field) => [field.name, field.dataTypeID]))
  say('again', (await client.query({ name: 'one', text: 'SELECT * FROM kept WHERE id = $1', values: [2] })).rowCount)
  say('arrays', (await client.query({ text: "SELECT 1 AS a, 'x' AS a", rowMode: 'array' })).rows)
  say('several', (await client.query('SELECT 1 AS one; SELECT 2 AS two')).map((result) => result.rows))
  const error = await client.query('SELECT nothing').catch((raised) => raised)
  say('error', [error.code, error.position, error.severity])
  const cursor = client.query(new Cursor('SELECT g FROM generate_series(1, 250) AS g'))
  const sizes = []
  for (let rows = await cursor.read(100); rows.length; rows = await cursor.read(100)) sizes.push(rows.length)
  await cursor.close()
  say('cursor', sizes)
  await client.query('BEGIN')
  await client.query('INSERT INTO kept (n) VALUES (1)')
  await client.query('ROLLBACK')
  say('rolled back', (await client.query('SELECT count(*)::int AS n FROM kept')).rows)
  await client.end()

  const pool = new pg.Pool({ max: 5 })
  const sums = await Promise.all([...Array(40).keys()].map((n) => pool.query('SELECT $1::int * 2 AS n', [n])))
  say('pool', sums.reduce((sum, result) => sum + result.rows[0].n, 0))
  await pool.query('CREATE FOREIGN TABLE clicks (page text, n int) SERVER stream')
  await pool.query('CREATE VIEW pages AS SELECT page, sum(n) AS n FROM clicks GROUP BY page')
  await Promise.all([...Array(40).keys()].map((n) => pool.query('INSERT INTO clicks VALUES ($1, $2)', ['p' + (n % 2), n])))
  say('view', (await pool.query('SELECT * FROM pages ORDER BY page')).rows)
  await pool.end()
}

main().catch((error) => { console.error(error); process.exit(1) })
