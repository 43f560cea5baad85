n = tools.npm_sentinel_mcp
packages = ["echarts-for-react", "react-chartjs-2", "@tremor/react"]
for name, r in zip(["deps", "size", "compare"], tools.gather(n.npmDeps.defer(packages=packages),
        n.npmSize.defer(packages=packages), n.npmCompare.defer(packages=packages))):
    print("##", name, str(r)[:1800])
