h = tools.howtocook_mcp
names = ["可乐鸡翅", "红烧肉", "凉拌黄瓜"]
for r in tools.gather(*[h.mcp_howtocook_getRecipeById.defer(query=n) for n in names]):
    print(str(r)[:1200])
