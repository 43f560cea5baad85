o = tools.opgg_mcp
names = ["AHRI", "SYNDRA", "VIKTOR"]
for name, r in zip(names, tools.gather(*[o.lol_champion_analysis.defer(game_mode="RANKED", champion=n, position="mid",
                                                                        lang="en_US") for n in names])):
    keep = {k: r[k] for k in ("summary", "core_items", "boots", "runes", "summoner_spells", "skills") if k in r} \
        if isinstance(r, dict) else r
    print(name, str(keep)[:1400])
