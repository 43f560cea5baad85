index, news = tools.gather(tools.investor.get_cnn_fear_greed_index.defer(days=7), tools.trends_hub.get_bbc_news.defer(category="business"))
print(str(index)[:1500])
print(str(news)[:2000])
