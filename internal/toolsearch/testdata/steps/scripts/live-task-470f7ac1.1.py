import datetime, re
now = str(tools.time.get_current_time(timezone="Asia/Seoul"))
today = datetime.date.fromisoformat(re.search(r"\d{4}-\d\d-\d\d", now).group())
span = {"fromdate": (today - datetime.timedelta(5)).strftime("%Y%m%d"), "todate": today.strftime("%Y%m%d")}
k = tools.kospi_kosdaq
calls = [f.defer(ticker=t, **span) for t in ("005930", "000660") for f in (k.get_stock_ohlcv, k.get_stock_market_cap)]
for r in tools.gather(*calls):
    print(r)
