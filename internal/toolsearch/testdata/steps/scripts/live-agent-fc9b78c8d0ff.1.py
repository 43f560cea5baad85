import re
found = str(tools.mcp_simple_arxiv.search_papers(query='abs:"retrieval-augmented generation"', max_results=5))
print(found[:2000])
ids = re.findall(r"\d{4}\.\d{4,5}", found)
if ids:
    print(str(tools.mcp_simple_arxiv.get_paper_data(paper_id=ids[0]))[:1500])
