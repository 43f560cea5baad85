sheet = tools.excel.excel_read_sheet(fileAbsolutePath="/root/excel/Local_Electronic_Sales.xlsx", sheetName="Sheet1")
print(str(sheet)[:800])
