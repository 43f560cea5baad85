wiki, news = tools.gather(tools.wikipedia.search_wikipedia.defer(query="NIO Inc. electric car company", limit=3),
                          tools.trends_hub.get_36kr_trending.defer(type="hot"))
print(str(wiki)[:1500])
text = str(news)
print("\n".join(l for l in text.splitlines() if "蔚来" in l or "NIO" in l) or text[:1500])
