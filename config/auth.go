package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// PerCaller is the value of Credentials that gives each caller's own credentials to the server.
const PerCaller = "per-caller"

// An Auth says how to sign in at a server: what its row says under "auth", and under "oauth" where "auth" does not say it.
// What is empty is found out.
type Auth struct {
	// Type is "oauth", "client_credentials", "enterprise", "workload", "apikey", or "none" where nobody is to sign in.
	Type string
	// CredentialID names a stored credential.
	CredentialID string
	// Issuer, and the addresses below it, are where to sign in: http or https URLs with a host. They stand in the place of
	// what the server says of itself.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	// ClientID and ClientSecret are those of a client that was registered before; one with a PrivateKey, in PEM, signs what it
	// says in the place of a secret. A value that Server.Deferred names as "auth client_id" and the like stands here as it was
	// written.
	ClientID, ClientSecret, PrivateKey string
	// IDPIssuer is the identity provider of an enterprise, IDPClientID and IDPClientSecret our client there, and IDToken says
	// there who the person is; for a workload it says at the server's own issuer what the program is.
	IDPIssuer, IDPClientID, IDPClientSecret, IDToken string
	// ClientMetadataURL is a client id metadata document: it is the client's id.
	ClientMetadataURL string
	// Scopes are what is asked for: nil means what the server asks for, an empty list nothing.
	Scopes []string
	// Resource names the server to the one who issues tokens, an absolute URI without a fragment; "none" where they know no
	// such parameter.
	Resource string
	// RedirectURI is where the browser comes back to, an http or https URL; CallbackPort and CallbackPath are where we wait for
	// it on this machine. Port 0 means a free one.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
	// Flow is how a person signs in: "browser", "device" or "paste".
	Flow string
}

// String says what an Auth is without what may be a secret.
func (a Auth) String() string { return fmt.Sprintf("auth %q", a.Type) }

// GoString is String.
func (a Auth) GoString() string { return a.String() }

// An authMember is one member of auth or oauth: what it is for people, and where its text goes.
type authMember struct {
	name, typ, doc string
	// sort says what the value is.
	sort authSort
	// to is where a text goes; nil for scopes and callback_port.
	to func(*Auth) *string
}

// An authSort is a sort of value of an authMember.
type authSort uint8

const (
	authWord    authSort = iota // a word that means something here
	authText                    // a text that nobody here looks into
	authSecret                  // a text that may hold references, and be a secret
	authAddress                 // an http or https URL
)

// authMembers is the one list of what auth and oauth may say. Names are written so, or in camelCase.
var authMembers = []authMember{
	{"type", `"oauth", "client_credentials", "enterprise", "workload", "apikey" or "none"`, `how; "none", and false in the place of the object, means never to sign in`,
		authWord, func(a *Auth) *string { return &a.Type }},
	{"credential_id", "string", "names a stored credential",
		authText, func(a *Auth) *string { return &a.CredentialID }},
	{"issuer", "URL", "who issues tokens for the server",
		authAddress, func(a *Auth) *string { return &a.Issuer }},
	{"authorization_url", "URL", "where a person signs in",
		authAddress, func(a *Auth) *string { return &a.AuthorizationURL }},
	{"token_url", "URL", "where tokens come from",
		authAddress, func(a *Auth) *string { return &a.TokenURL }},
	{"device_url", "URL", "where signing in on another device begins",
		authAddress, func(a *Auth) *string { return &a.DeviceURL }},
	{"registration_url", "URL", "where a client is registered",
		authAddress, func(a *Auth) *string { return &a.RegistrationURL }},
	{"client_id", "string", "the id of a client that was registered before; see References",
		authSecret, func(a *Auth) *string { return &a.ClientID }},
	{"client_secret", "string", "its secret; see References",
		authSecret, func(a *Auth) *string { return &a.ClientSecret }},
	{"private_key", "string", "in its place a private key in PEM, with which the client signs where no person signs in; see References",
		authSecret, func(a *Auth) *string { return &a.PrivateKey }},
	{"idp_issuer", "URL", "for enterprise: the identity provider that says which servers a person may use",
		authAddress, func(a *Auth) *string { return &a.IDPIssuer }},
	{"idp_client_id", "string", "the id of our client there; see References",
		authSecret, func(a *Auth) *string { return &a.IDPClientID }},
	{"idp_client_secret", "string", "its secret; see References",
		authSecret, func(a *Auth) *string { return &a.IDPClientSecret }},
	{"id_token", "string", "what it gave the person at their sign-in there, for workload what says who the program is; best a file that is kept fresh; see References",
		authSecret, func(a *Auth) *string { return &a.IDToken }},
	{"client_metadata_url", "URL", "a client id metadata document, which is the client's id",
		authAddress, func(a *Auth) *string { return &a.ClientMetadataURL }},
	{"scopes", "list of strings, or words", "what is asked for, in the place of what the server asks for; also written scope",
		authWord, nil},
	{"resource", "URI", "what the server is called where tokens come from, in the place of its own word; `none` where they know no such word",
		authText, func(a *Auth) *string { return &a.Resource }},
	{"redirect_uri", "URL", "where the browser comes back to, as the client was registered with it",
		authAddress, func(a *Auth) *string { return &a.RedirectURI }},
	{"callback_port", "1 to 65535", "where we wait for it; a free port where this says nothing",
		authWord, nil},
	{"callback_path", "path", "its path there",
		authText, func(a *Auth) *string { return &a.CallbackPath }},
	{"flow", `"browser", "device" or "paste"`, "how a person signs in",
		authWord, func(a *Auth) *string { return &a.Flow }},
}

// AuthMember gives the name, in snake_case, of a member of auth or oauth that is written in either way, and whether its
// value is never a secret, but for what an address may say beside scheme, host and path. It gives nothing for one that
// nobody here knows.
func AuthMember(written string) (name string, public bool) {
	m := authMemberNamed(written)
	if m == nil {
		return "", false
	}
	return m.name, m.sort != authSecret || strings.HasSuffix(m.name, "client_id")
}

func authMemberNamed(written string) *authMember {
	if written == "scope" {
		written = "scopes"
	}
	for i, m := range authMembers {
		if written == m.name || written == camel(m.name) {
			return &authMembers[i]
		}
	}
	return nil
}

// camel writes a name in camelCase.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[1+i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// The words of type and flow.
var (
	authTypes = []string{"oauth", "client_credentials", "enterprise", "workload", "apikey", "none"}
	authFlows = []string{"browser", "device", "paste"}
)

// signIn reads what the row says under auth and under oauth. What the first says counts.
func (r *rowReader) signIn(row doc.Node) {
	said := map[string]bool{}
	for _, in := range []string{"auth", "oauth"} {
		m, ok := row.Find(in)
		if !ok || m.Value.Kind == doc.Null {
			continue
		}
		if r.server.Auth == nil {
			r.server.Auth = &Auth{}
		}
		kind := ""
		if in == "oauth" {
			kind = in // the member's name says so
		}
		switch v := m.Value; v.Kind {
		case doc.Table:
			r.authTable(in, v, said)
		case doc.Text:
			kind = r.word(in, v, authTypes...)
		case doc.Boolean:
			if v.Text == "false" {
				kind = "none"
			}
		default:
			r.refuse("%q must be an object, or false", in)
		}
		if kind != "" && !said["type"] {
			r.server.Auth.Type, said["type"] = kind, true
		}
	}
}

func (r *rowReader) authTable(in string, table doc.Node, said map[string]bool) {
	last := map[string]int{}
	for i, m := range table.Members {
		if known := authMemberNamed(m.Name); known != nil {
			last[known.name] = i
		}
	}
	for i, m := range table.Members {
		known := authMemberNamed(m.Name)
		switch {
		case m.Value.Kind == doc.Null: // as good as absent
		case known == nil:
			r.unknownAuth(in, m)
		case last[known.name] != i:
			r.warn(m.Line, "%q in %q is written twice; the last one counts", m.Name, in)
		case !said[known.name]:
			said[known.name] = true
			r.authMember(in+"."+m.Name, known, m.Value)
		}
	}
}

func (r *rowReader) unknownAuth(in string, m doc.Member) {
	hint := ""
	if len(r.warnings) <= maxWarnings { // what comes after is only counted
		var names []string
		for _, known := range authMembers {
			names = append(names, known.name, camel(known.name))
		}
		hint = doc.DidYouMean(m.Name, names)
	}
	r.warn(m.Line, "unknown member %q in %q%s", m.Name, in, hint)
}

// authMember reads one member; name is what people know it by.
func (r *rowReader) authMember(name string, known *authMember, v doc.Node) {
	a := r.server.Auth
	switch {
	case known.name == "type":
		a.Type = r.word(name, v, authTypes...)
	case known.name == "flow":
		a.Flow = r.word(name, v, authFlows...)
	case known.name == "scopes":
		a.Scopes = r.scopes(name, v)
	case known.name == "callback_port":
		a.CallbackPort = r.port(name, v)
	case known.sort == authSecret:
		s, ok := v.Word()
		if !ok {
			r.refuse("%q must be a string", name)
		}
		*known.to(a) = r.secret("auth "+known.name, s)
	default:
		*known.to(a) = r.text(name, v)
	}
	if a.CallbackPath != "" && !strings.HasPrefix(a.CallbackPath, "/") {
		a.CallbackPath = "/" + a.CallbackPath
	}
}

// scopes reads a list of words, or a text of them with blanks between.
func (r *rowReader) scopes(name string, v doc.Node) []string {
	words, ok := v.Words()
	if s, isWord := v.Word(); isWord {
		words, ok = []string{s}, true
	}
	scopes := []string{}
	for _, word := range words {
		scopes = append(scopes, strings.Fields(r.expand(name, word))...)
	}
	// RFC 6749, 3.3: printable ASCII without quotes and backslashes.
	strange := func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }
	if !ok || slices.ContainsFunc(scopes, func(s string) bool { return strings.ContainsFunc(s, strange) }) {
		r.refuse("%q must be a list of scopes, or a string with blanks between them", name)
	}
	return scopes
}

func (r *rowReader) port(name string, v doc.Node) int {
	port, err := strconv.Atoi(v.Text)
	if v.Kind != doc.Number && v.Kind != doc.Text || err != nil || port < 1 || port > 65535 {
		r.refuse("%q must be a port, 1 to 65535", name)
		return 0
	}
	return port
}

// check says why nobody could sign in so, or "".
func (a *Auth) check() string {
	for _, m := range authMembers {
		if m.sort != authAddress {
			continue
		}
		s := *m.to(a)
		u, err := url.Parse(s)
		if s != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || strings.TrimSpace(s) != s) {
			return fmt.Sprintf(`%q in "auth" must be an http or https URL with a host`, m.name)
		}
	}
	if u, err := url.Parse(a.Resource); a.Resource != "" && a.Resource != "none" && (err != nil || !u.IsAbs() || u.Fragment != "") {
		return `"resource" in "auth" must be an absolute URI without a fragment, or "none"`
	}
	switch enterprise := a.Type == "enterprise"; {
	case enterprise && (a.IDPIssuer == "" || a.IDPClientID == "" || a.IDToken == "" || a.ClientID == ""):
		return `"auth" of the type "enterprise" needs "idp_issuer", "idp_client_id", "id_token" and "client_id"`
	case a.Type == "workload" && (a.IDToken == "" || a.ClientID == ""):
		return `"auth" of the type "workload" needs "id_token" and "client_id"`
	case a.PrivateKey != "" && !enterprise && a.Type != "client_credentials" && a.Type != "workload":
		return `"private_key" in "auth" is for the types "client_credentials", "enterprise" and "workload"`
	}
	return ""
}

// credentials reads whose credentials the server is given.
func (r *rowReader) credentials(v doc.Node) {
	r.server.Credentials = r.word("credentials", v)
	if s := drawbridge.ServerID(r.server.Credentials); s != "" && s.Valid() != nil {
		r.refuse(`"credentials" must be %q, or the name of stored ones: letters, numbers, dash, underscore and dot`, PerCaller)
	}
}
