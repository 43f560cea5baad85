print(str(tools.trends_hub.get_douban_rank(count=20))[:900])
