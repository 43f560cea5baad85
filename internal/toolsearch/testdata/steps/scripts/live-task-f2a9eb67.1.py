found = tools.web3_research_mcp.research_with_keywords(tokenName="Bitcoin", tokenTicker="BTC",
    keywords=["market", "technology", "adoption", "risks", "outlook"])
print(str(found)[:4000])
