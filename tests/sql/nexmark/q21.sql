-- Channel's number: that of a known channel, else the one in the address; bids without one are left out.
select auction, bidder, price, channel, channel_id
from (
    select auction, bidder, price, channel,
        case lower(channel) when 'apple' then '0' when 'google' then '1' when 'facebook' then '2' when 'baidu' then '3'
            else (regexp_match(url, '[?&]channel_id=([^&]*)'))[1] end as channel_id
    from bid
) as found
where channel_id is not null
