c = tools.mcp_crypto_price
for r in tools.gather(c.get_crypto_price.defer(symbol="BTC"), c.get_market_analysis.defer(symbol="BTC")):
    print(r)
