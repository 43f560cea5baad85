data, page = tools.gather(tools.mcp_simple_arxiv.get_paper_data.defer(paper_id="2203.12277"),
                          tools.fetch.fetch.defer(url="https://arxiv.org/abs/2203.12277", max_length=3000))
print(data)
print(str(page)[:1500])
