c = tools.calculator
print("Samsung %", c.calculate(expression="(56300 - 55900) / 55900 * 100"))
print("SK Hynix %", c.calculate(expression="(176600 - 173900) / 173900 * 100"))
