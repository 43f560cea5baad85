report = """# Bitcoin: a report

## Market
Bitcoin trades near 97,400 USD with a market capitalisation of about 1.93 trillion USD. Spot funds took in 6.1 billion USD in the last
quarter; their share of daily volume is now close to a fifth.

## Technology
The last halving cut the block subsidy to 3.125 BTC. Taproot outputs are used in a third of all transactions, and the capacity of the
Lightning network has grown to 5,300 BTC. The hash rate reached 780 EH/s.

## Adoption
Listed companies hold about 2.6 % of the supply. Two states have begun to buy reserves; payments grow mainly in Latin America.

## Risks
Regulation of custody, concentration of mining pools, and falling fee income of miners between the halvings.

## Outlook
Analysts expect a range of 85,000 to 130,000 USD for the next twelve months.
"""
print(tools.filesystem.write_file(path="/root/markdown/bitcoin.md", content=report))
