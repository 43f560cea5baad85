package clientconfig

import (
	"net/url"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// convertAuth returns a function that converts an object with the sign-in parameters by the rules in fields. If the
// value is false instead of an object, the converted row disables the sign-in.
func convertAuth(fields ...memberRule) func(*rowConverter, configfile.Member) {
	return func(c *rowConverter, m configfile.Member) {
		if yes, isFlag := m.Value.Bool(); isFlag {
			if !yes {
				c.setAuthMember("type", m.Line, configfile.Node{Kind: configfile.Text, Line: m.Line, Text: "none"})
			}
			return
		}
		if m.Value.Kind != configfile.Table {
			c.addNote(m.Line, "%q was left out: it is not an object", m.Name)
			return
		}
		last := map[string]int{}
		for i, inner := range m.Value.Members {
			last[inner.Name] = i
		}
		for at, inner := range m.Value.Members {
			i := slices.IndexFunc(fields, func(f memberRule) bool { return f.name == inner.Name })
			switch {
			case last[inner.Name] != at || inner.Value.Kind == configfile.Null || inner.Value.Kind == configfile.Text &&
				inner.Value.Text == "":
			case i < 0:
				c.addNote(inner.Line, "unknown member %s in %q was left out", safetext.Quote(inner.Name), m.Name)
			default:
				fields[i].convert(c, inner)
			}
		}
	}
}

// setAuthMember sets a member of the converted auth. If the member was already set, the first value remains.
func (c *rowConverter) setAuthMember(name string, line int, v configfile.Node) {
	key := "auth " + name
	if c.seenPairs[key] {
		return
	}
	c.seenPairs[key] = true
	said := configfile.Member{Name: name, Line: line, Value: v}
	i := slices.IndexFunc(c.out, func(m configfile.Member) bool { return m.Name == "auth" })
	if i < 0 {
		c.setMember("auth", line, configfile.Node{Kind: configfile.Table, Line: line,
			Members: []configfile.Member{said}})
		return
	}
	c.out[i].Value.Members = append(c.out[i].Value.Members, said)
}

// copyAuthAs returns a function that copies a member to the converted auth under the given name. A leading "!" is
// escaped, because other programs do not interpret such a value as a command.
func copyAuthAs(name string) func(*rowConverter, configfile.Member) {
	return func(c *rowConverter, m configfile.Member) {
		v := c.convertTexts(m.Value)
		if v.Kind == configfile.List && len(v.Items) == 0 {
			return // an empty value has no meaning
		}
		if strings.HasPrefix(v.Text, "!") && v.Kind == configfile.Text {
			v.Text = quoteValue(v.Text)
		}
		c.setAuthMember(name, m.Line, v)
	}
}

// convertAuthDisabled converts a member that is false if the server needs no sign-in.
func convertAuthDisabled(c *rowConverter, m configfile.Member) {
	if yes, ok := m.Value.Bool(); ok && !yes {
		c.setAuthMember("type", m.Line, configfile.Node{Kind: configfile.Text, Line: m.Line, Text: "none"})
	}
}

// convertCallbackPort converts the callback port. It also sets the redirect URI to http://localhost:PORT/callback,
// because programs with this member register that URI.
func convertCallbackPort(c *rowConverter, m configfile.Member) {
	copyAuthAs("callback_port")(c, m)
	if _, ok := m.Value.PositiveInt(); ok {
		c.setAuthMember("redirect_uri", m.Line, configfile.Node{Kind: configfile.Text, Line: m.Line,
			Text: "http://localhost:" + m.Value.Text + "/callback"})
	}
}

// convertCallbackURL converts the redirect URI. An http URI without a port is left out, because Drawbridge chooses a
// free port itself.
func convertCallbackURL(c *rowConverter, m configfile.Member) {
	u, err := url.Parse(m.Value.Text)
	if err != nil || u.Port() == "" && u.Scheme != "https" {
		leaveOut("Drawbridge takes a free port")(c, m)
		return
	}
	copyAuthAs("redirect_uri")(c, m)
}

// convertMetadataURL converts the URL of an authorization server's metadata to the server's issuer, by removing the
// well-known path. RFC 8414 inserts this path before the issuer's path; OpenID Connect appends it. A URL without such a
// path is left out.
func convertMetadataURL(c *rowConverter, m configfile.Member) {
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
		leaveOut("its address says nothing of who issues tokens")(c, m)
		return
	}
	issuer := url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}
	m.Value.Text = issuer.String()
	copyAuthAs("issuer")(c, m)
}

// camelCaseMembers returns the rules for common auth members in camel case, followed by the rules in more.
func camelCaseMembers(more ...memberRule) []memberRule {
	return append([]memberRule{
		{"clientId", copyAuthAs("client_id")}, {"clientSecret", copyAuthAs("client_secret")},
		{"redirectUri", copyAuthAs("redirect_uri")},
		{"scope", copyAuthAs("scopes")}, {"scopes", copyAuthAs("scopes")},
	}, more...)
}
