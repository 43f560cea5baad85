rank = tools.trends_hub.get_weread_rank(category="rising")
print(str(rank)[:900])
