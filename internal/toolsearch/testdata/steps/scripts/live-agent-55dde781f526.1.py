print(str(tools.howtocook_mcp.mcp_howtocook_whatToEat(peopleCount=6))[:1500])
