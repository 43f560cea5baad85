import datetime, re
codes = str(tools.call("12306-mcp__get-station-code-by-names", stationNames="北京南|上海南"))
start, end = re.findall(r"[A-Z]{3}", codes)[:2]
day = datetime.date.today() + datetime.timedelta(1)
print(day, tools.call("12306-mcp__get-tickets", date=str(day), fromStation=start, toStation=end, trainFilterFlags="G",
                      sortFlag="startTime", limitedNum=1))
