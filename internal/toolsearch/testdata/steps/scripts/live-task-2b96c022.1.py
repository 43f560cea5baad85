whois, sitemap = tools.gather(tools.whois.whois_domain.defer(domain="baidu.com"),
                              tools.sitemap.get_sitemap_tree.defer(url="https://www.baidu.com"))
report = f"# Reconnaissance of www.baidu.com\n\n## Whois\n\n```\n{whois}\n```\n\n## Sitemap\n\n```\n{sitemap}\n```\n"
print(tools.filesystem.write_file(path="/root/markdown/baidu_report.md", content=report))
print(report[:1500])
