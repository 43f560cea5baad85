package dialect

import (
	"net/url"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// signIn carries an object that says how to sign in; false in its place means never to. That a server is signed in at goes
// without saying.
func signIn(fields ...field) func(*carrier, doc.Member) {
	return func(c *carrier, m doc.Member) {
		if yes, isFlag := m.Value.Flag(); isFlag {
			if !yes {
				c.sayAuth("type", m.Line, doc.Node{Kind: doc.Text, Line: m.Line, Text: "none"})
			}
			return
		}
		if m.Value.Kind != doc.Table {
			c.note(m.Line, "%q was left out: it is no object", m.Name)
			return
		}
		last := map[string]int{}
		for i, inner := range m.Value.Members {
			last[inner.Name] = i
		}
		for at, inner := range m.Value.Members {
			i := slices.IndexFunc(fields, func(f field) bool { return f.name == inner.Name })
			switch {
			case last[inner.Name] != at || inner.Value.Kind == doc.Null || inner.Value.Kind == doc.Text && inner.Value.Text == "":
			case i < 0:
				c.note(inner.Line, "unknown member %s in %q was left out", safetext.Quote(inner.Name), m.Name)
			default:
				fields[i].carry(c, inner)
			}
		}
	}
}

// sayAuth says one member of our auth; the first of a name stays.
func (c *carrier) sayAuth(name string, line int, v doc.Node) {
	key := "auth " + name
	if c.paired[key] {
		return
	}
	c.paired[key] = true
	said := doc.Member{Name: name, Line: line, Value: v}
	i := slices.IndexFunc(c.out, func(m doc.Member) bool { return m.Name == "auth" })
	if i < 0 {
		c.put("auth", line, doc.Node{Kind: doc.Table, Line: line, Members: []doc.Member{said}})
		return
	}
	c.out[i].Value.Members = append(c.out[i].Value.Members, said)
}

// auth carries a member under our name for it. No program takes a text there for a command.
func auth(name string) func(*carrier, doc.Member) {
	return func(c *carrier, m doc.Member) {
		v := c.texts(m.Value)
		if v.Kind == doc.List && len(v.Items) == 0 {
			return // it says nothing
		}
		if strings.HasPrefix(v.Text, "!") && v.Kind == doc.Text {
			v.Text = quote(v.Text)
		}
		c.sayAuth(name, m.Line, v)
	}
}

// authOff carries a member that is false where nobody is to sign in.
func authOff(c *carrier, m doc.Member) {
	if yes, ok := m.Value.Flag(); ok && !yes {
		c.sayAuth("type", m.Line, doc.Node{Kind: doc.Text, Line: m.Line, Text: "none"})
	}
}

// callbackPort carries the port of programs whose clients are registered with http://localhost:PORT/callback.
func callbackPort(c *carrier, m doc.Member) {
	auth("callback_port")(c, m)
	if _, ok := m.Value.Count(); ok {
		c.sayAuth("redirect_uri", m.Line, doc.Node{Kind: doc.Text, Line: m.Line, Text: "http://localhost:" + m.Value.Text + "/callback"})
	}
}

// callbackURL carries where the browser comes back to. Without a port it is only a pattern.
func callbackURL(c *carrier, m doc.Member) {
	u, err := url.Parse(m.Value.Text)
	if err != nil || u.Port() == "" && u.Scheme != "https" {
		left("Drawbridge takes a free port")(c, m)
		return
	}
	auth("redirect_uri")(c, m)
}

// metadata carries the address of a document about who issues tokens: RFC 8414 puts a well-known name before the issuer's
// path, OpenID Connect behind it.
func metadata(c *carrier, m doc.Member) {
	u, err := url.Parse(m.Value.Text)
	path, found := "", false
	if err == nil && u.RawQuery == "" && u.Fragment == "" {
		for _, name := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
			before, after, ok := strings.Cut(u.Path, name)
			if ok && (after == "" || before == "" && after[0] == '/') {
				path, found = before+after, true
			}
		}
	}
	if !found {
		left("its address says nothing of who issues tokens")(c, m)
		return
	}
	issuer := url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}
	m.Value.Text = issuer.String()
	auth("issuer")(c, m)
}

// camelCase are the members that most programs have, as they write them.
func camelCase(more ...field) []field {
	return append([]field{
		{"clientId", auth("client_id")}, {"clientSecret", auth("client_secret")}, {"redirectUri", auth("redirect_uri")},
		{"scope", auth("scopes")}, {"scopes", auth("scopes")},
	}, more...)
}
