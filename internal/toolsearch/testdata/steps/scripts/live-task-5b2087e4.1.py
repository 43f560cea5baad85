data = str(tools.opgg_mcp.lol_champion_positions_data(lang="en_US"))
lines = data.splitlines()
print(lines[0])
print("\n".join([l for l in lines if "MID" in l.upper()][:15]) or data[:1500])
