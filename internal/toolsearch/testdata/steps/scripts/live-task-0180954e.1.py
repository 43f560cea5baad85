hub = tools.trends_hub
lists = tools.gather(hub.get_bilibili_rank.defer(type=4), hub.get_gcores_new.defer(), hub.get_weibo_trending.defer(),
                     hub.get_douyin_trending.defer())
for name, text in zip(["bilibili games", "gcores", "weibo", "douyin"], lists):
    print("##", name)
    print(str(text)[:1500])
