print(str(tools.wikipedia.get_article(title="Llullaillaco"))[:3000])
