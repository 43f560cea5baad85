hub = tools.trends_hub
for name, r in zip(["36kr", "BBC", "NYT"], tools.gather(hub.get_36kr_trending.defer(type="hot"),
        hub.get_bbc_news.defer(category="business"), hub.get_nytimes_news.defer(region="global", section="Business"))):
    print("##", name)
    print(str(r)[:2500])
