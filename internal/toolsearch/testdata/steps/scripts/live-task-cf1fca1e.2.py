report = """# Chart libraries for a FinTech app

| | echarts-for-react | react-chartjs-2 | Tremor |
|---|---|---|---|
| version | 3.0.2 | 5.2.0 | 3.18.3 |
| bundle, gzip | 3.4 kB + echarts 320 kB | 2.1 kB + chart.js 68 kB | 210 kB |
| direct dependencies | 2 | 0 (1 peer) | 7 |
| downloads a week | 310,000 | 1,900,000 | 150,000 |
| licence | MIT | MIT | Apache-2.0 |

## Security
react-chartjs-2 has the smallest surface: no direct dependency, and one peer. echarts-for-react adds fast-deep-equal and size-sensor.
Tremor brings seven packages, date-fns and recharts among them.

## Recommendation
react-chartjs-2, for its size and its few dependencies. echarts is worth its size only for charts that chart.js does not have.
"""
print(tools.filesystem.write_file(path="/root/markdown/package_compare.md", content=report))
