import collections, re
sheet = str(tools.excel.excel_read_sheet(fileAbsolutePath="/root/excel/Local_Electronic_Sales.xlsx", sheetName="Sheet1"))
months = collections.Counter()
for row in re.findall(r"<tr>(.*?)</tr>", sheet, re.S):
    cells = re.findall(r"<td>(.*?)</td>", row)
    if len(cells) > 4 and re.match(r"\d{4}-\d\d", cells[1]):
        months[cells[1][:7]] += float(cells[-1])
data = [{"category": m, "value": round(v, 2)} for m, v in sorted(months.items())]
print(tools.mcp_server_chart.generate_bar_chart(data=data, title="Sales by month", axisXTitle="month", axisYTitle="sales"))
print(data)
