package webpage

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// minMainPart is the minimum share of a page's text that its main part must contain. An element with less text is not
// used as the main part.
const minMainPart = 0.1

// keepMainPart removes everything except the main part from a page. The main part is the only <main> element, or else
// the only <article> element, if it contains enough of the text (see minMainPart). Without such an element, only menus,
// headers, footers and similar elements are removed.
func keepMainPart(doc *html.Node) {
	body := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return
	}
	all := textLength(body)
	for _, is := range []func(*html.Node) bool{isMain, isArticle} {
		found := outermost(body, is)
		if len(found) == 1 && float64(textLength(found[0])) >= minMainPart*float64(all) {
			removeAround(body, found[0])
			break
		}
	}
	for _, n := range outermost(body, isBesideMain) {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

func isMain(n *html.Node) bool { return n.DataAtom == atom.Main || attribute(n, "role") == "main" }

func isArticle(n *html.Node) bool { return n.DataAtom == atom.Article }

// isBesideMain reports whether an element does not belong to the main part: it is a menu, a form, hidden, or the header
// or footer of the page. The header and footer of an article belong to the article.
func isBesideMain(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Aside, atom.Form, atom.Dialog, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe:
		return true
	case atom.Header, atom.Footer:
		for p := n.Parent; p != nil; p = p.Parent {
			if isArticle(p) || isMain(p) {
				return false
			}
		}
		return true
	}
	hidden := slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
	return hidden || attribute(n, "aria-hidden") == "true" ||
		slices.Contains([]string{"navigation", "banner", "contentinfo", "search", "complementary"}, attribute(n, "role"))
}

// removeAround removes everything below the element up, except node and the elements that contain node.
func removeAround(up, node *html.Node) {
	for ; node != up && node.Parent != nil; node = node.Parent {
		for _, sibling := range slices.Collect(node.Parent.ChildNodes()) {
			if sibling != node {
				node.Parent.RemoveChild(sibling)
			}
		}
	}
}

// outermost returns the elements below node for which wanted returns true. It does not search inside these elements.
func outermost(node *html.Node, wanted func(*html.Node) bool) (all []*html.Node) {
	for child := range node.ChildNodes() {
		if child.Type == html.ElementNode && wanted(child) {
			all = append(all, child)
		} else {
			all = append(all, outermost(child, wanted)...)
		}
	}
	return all
}

func first(node *html.Node, wanted func(*html.Node) bool) *html.Node {
	if found := outermost(node, wanted); len(found) > 0 {
		return found[0]
	}
	return nil
}

// textLength returns the number of bytes of the visible text below a node.
func textLength(node *html.Node) (n int) {
	for d := range node.Descendants() {
		if d.Type == html.TextNode && d.Parent.DataAtom != atom.Script && d.Parent.DataAtom != atom.Style {
			n += len(strings.TrimSpace(d.Data))
		}
	}
	return n
}
