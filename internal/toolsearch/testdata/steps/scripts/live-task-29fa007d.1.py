w = tools.wuwa_mcp
for r in tools.gather(*[w.get_character_info.defer(character_name=n) for n in ("忌炎", "莫特斐", "维里奈")],
                      w.get_artifact_info.defer(artifact_name="啸谷长风")):
    print(str(r)[:1500])
    print("----")
