package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// PerCallerCredentials is a value of Server.Credentials. With this value, each caller's own credentials are sent to the
// server.
const PerCallerCredentials = "per-caller"

// An Auth configures how Drawbridge signs in at a server. It is read from the members "auth" and "oauth" of the
// server's row. If both contain the same member, the value in "auth" is used. Empty fields are discovered from the
// server's metadata, or have a default.
type Auth struct {
	// Type is "oauth", "client_credentials", "enterprise", "workload", "apikey", or "none" for no sign-in.
	Type string
	// CredentialID is the name of a stored credential. For the type "apikey", it names an API key in the vault. A url
	// receives the key in the header Header; a program receives it in the environment variable Variable. For the other
	// types, it names a stored sign-in. A stdio row without Issuer and TokenURL uses the sign-in of that name, even if
	// another row made it.
	CredentialID, Header, Variable string
	// Issuer is the issuer of access tokens; the other four are endpoints of the issuer. All are http or https URLs
	// with a host. A field that is set overrides the server's own metadata.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	// ClientID and ClientSecret are the credentials of the client that is registered for Drawbridge at the issuer.
	// PrivateKey, in PEM, replaces the secret: Drawbridge then signs a client assertion. If Server.DeferredValues lists
	// one of these members, such as "auth client_id", the field contains the reference as written, and not its value.
	ClientID, ClientSecret, PrivateKey string
	// IDPIssuer is the identity provider of an enterprise. IDPClientID and IDPClientSecret are Drawbridge's client
	// credentials at this provider, and IDToken is the person's ID token from this provider. For the type "workload",
	// IDToken is instead the token that identifies the program to Issuer.
	IDPIssuer, IDPClientID, IDPClientSecret, IDToken string
	// ClientMetadataURL is the URL of a client ID metadata document; the URL is used as the client id.
	ClientMetadataURL string
	// Scopes are the requested scopes: nil means the scopes that the server names, an empty list means no scopes.
	Scopes []string
	// Resource is the resource parameter of requests to the issuer: an absolute URI, without a fragment, that
	// identifies the server. "none" omits the parameter, for an issuer that does not support it.
	Resource string
	// RedirectURI is the http or https URL to which the browser returns after the sign-in. CallbackPort and
	// CallbackPath are the port and the path at which Drawbridge waits for the browser on this machine; port 0 means a
	// free port.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
	// Flow is how a person signs in: "browser", "device" or "paste".
	Flow string
	// AcceptEndpoints are two origins: of the sign-in page and of the token endpoint. A sign-in with exactly these
	// origins is accepted although the two differ. In a project's row, AcceptEndpoints has no effect.
	AcceptEndpoints drawbridge.SignInEndpoints
}

// String returns the type only, since other fields may be secret.
func (a Auth) String() string { return fmt.Sprintf("auth %q", a.Type) }

// GoString returns the same as String.
func (a Auth) GoString() string { return a.String() }

// An authMember describes one member of the objects auth and oauth. If the member's value is a string, a field of Auth
// stores it.
type authMember struct {
	name, typ, doc string
	// kind is the kind of the member's value.
	kind authValueKind
	// target returns a pointer to the field of Auth that stores the string; nil for scopes, callback_port and
	// accept_endpoints.
	target func(*Auth) *string
}

// An authValueKind is a kind of value of an authMember.
type authValueKind uint8

const (
	authKeyword authValueKind = iota // a keyword, a list or a port
	authText                         // any string
	authSecret                       // a string that may contain references and may be a secret
	authURL                          // an http or https URL
)

// authMemberTable lists all members of auth and oauth, with their names in snake_case. A file may contain the names in
// camelCase instead.
var authMemberTable = []authMember{
	{"type", `"oauth", "client_credentials", "enterprise", "workload", "apikey" or "none"`,
		`how to sign in; "none", or false in place of the object, never signs in`,
		authKeyword, func(a *Auth) *string { return &a.Type }},
	{"credential_id", "string",
		"the name of a stored credential: for apikey a secret of drawbridge secret set, otherwise a sign-in",
		authText, func(a *Auth) *string { return &a.CredentialID }},
	{"header", "string", "for apikey at a url: the header that gets the key; by default Authorization, as a bearer token",
		authText, func(a *Auth) *string { return &a.Header }},
	{"variable", "string", "for apikey with a command: the environment variable that gets the key",
		authText, func(a *Auth) *string { return &a.Variable }},
	{"issuer", "URL", "the issuer of tokens for the server",
		authURL, func(a *Auth) *string { return &a.Issuer }},
	{"authorization_url", "URL", "the authorization endpoint",
		authURL, func(a *Auth) *string { return &a.AuthorizationURL }},
	{"token_url", "URL", "the token endpoint",
		authURL, func(a *Auth) *string { return &a.TokenURL }},
	{"device_url", "URL", "the device authorization endpoint",
		authURL, func(a *Auth) *string { return &a.DeviceURL }},
	{"registration_url", "URL", "the client registration endpoint",
		authURL, func(a *Auth) *string { return &a.RegistrationURL }},
	{"client_id", "string", "the id of a registered client; see References",
		authSecret, func(a *Auth) *string { return &a.ClientID }},
	{"client_secret", "string", "the secret of the client; see References",
		authSecret, func(a *Auth) *string { return &a.ClientSecret }},
	{"private_key", "string",
		"a private key in PEM in place of the secret, for types without a person; see References",
		authSecret, func(a *Auth) *string { return &a.PrivateKey }},
	{"idp_issuer", "URL", "for enterprise: the identity provider that decides which servers a person may use",
		authURL, func(a *Auth) *string { return &a.IDPIssuer }},
	{"idp_client_id", "string", "the id of Drawbridge's client at the identity provider; see References",
		authSecret, func(a *Auth) *string { return &a.IDPClientID }},
	{"idp_client_secret", "string", "the secret of that client; see References",
		authSecret, func(a *Auth) *string { return &a.IDPClientSecret }},
	{"id_token", "string",
		"the person's ID token from the identity provider; for workload, the token that identifies the program; preferably a file that another program keeps current; see References",
		authSecret, func(a *Auth) *string { return &a.IDToken }},
	{"client_metadata_url", "URL", "the URL of a client id metadata document, used as the client id",
		authURL, func(a *Auth) *string { return &a.ClientMetadataURL }},
	{"scopes", "list of strings, or words",
		"the scopes to request in place of those that the server names; also written scope",
		authKeyword, nil},
	{"resource", "URI",
		"the value of the OAuth parameter resource, if the issuer knows the server by another name than the server publishes; `none` leaves the parameter out, for an issuer that does not support it",
		authText, func(a *Auth) *string { return &a.Resource }},
	{"redirect_uri", "URL", "the address that the browser returns to, as registered for the client",
		authURL, func(a *Auth) *string { return &a.RedirectURI }},
	{"callback_port", "1 to 65535", "the local port that waits for the browser; a free port by default",
		authKeyword, nil},
	{"callback_path", "path", "the path on that port",
		authText, func(a *Auth) *string { return &a.CallbackPath }},
	{"accept_endpoints", "list of two origins",
		"the origins of the sign-in page and of the token endpoint, accepted although they differ; ignored in a project's row",
		authKeyword, nil},
	{"flow", `"browser", "device" or "paste"`, "how a person signs in",
		authKeyword, func(a *Auth) *string { return &a.Flow }},
}

// CanonicalAuthMember returns the snake_case name of a member of auth or oauth. written is the member's name in
// snake_case or camelCase. The result is empty for an unknown member. public reports whether the member's value is not
// a secret. If a public value is a URL, its user info, query and fragment may still be secret.
func CanonicalAuthMember(written string) (name string, public bool) {
	m := authMemberNamed(written)
	if m == nil {
		return "", false
	}
	return m.name, m.kind != authSecret || strings.HasSuffix(m.name, "client_id")
}

func authMemberNamed(written string) *authMember {
	if written == "scope" {
		written = "scopes"
	}
	for i, m := range authMemberTable {
		if written == m.name || written == camelCase(m.name) {
			return &authMemberTable[i]
		}
	}
	return nil
}

// camelCase returns a name in camelCase.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[1+i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// The permitted values of the members type and flow.
var (
	authTypes = []string{"oauth", "client_credentials", "enterprise", "workload", "apikey", "none"}
	authFlows = []string{"browser", "device", "paste"}
)

// readAuth reads the members auth and oauth of a row. If both contain the same member, the value in auth is used.
func (r *rowReader) readAuth(row configfile.Node) {
	said := map[string]bool{}
	for _, in := range []string{"auth", "oauth"} {
		m, ok := row.Find(in)
		if !ok || m.Value.Kind == configfile.Null {
			continue
		}
		if r.server.Auth == nil {
			r.server.Auth = &Auth{}
		}
		kind := ""
		if in == "oauth" {
			kind = in // the type follows from the member's name
		}
		switch v := m.Value; v.Kind {
		case configfile.Table:
			r.readAuthTable(in, v, said)
		case configfile.Text:
			kind = r.readWord(in, v, authTypes...)
		case configfile.Boolean:
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

func (r *rowReader) readAuthTable(in string, table configfile.Node, said map[string]bool) {
	last := map[string]int{}
	for i, m := range table.Members {
		if known := authMemberNamed(m.Name); known != nil {
			last[known.name] = i
		}
	}
	for i, m := range table.Members {
		known := authMemberNamed(m.Name)
		switch {
		case m.Value.Kind == configfile.Null: // treated as absent
		case known == nil:
			r.warnUnknownAuthMember(in, m)
		case last[known.name] != i:
			r.warn(m.Line, "%q in %q is written twice; the last one is used", m.Name, in)
		case !said[known.name]:
			said[known.name] = true
			r.readAuthMember(in+"."+m.Name, known, m.Value)
		}
	}
}

func (r *rowReader) warnUnknownAuthMember(in string, m configfile.Member) {
	hint := ""
	if len(r.warnings) <= maxWarnings { // further warnings are only counted
		var names []string
		for _, known := range authMemberTable {
			names = append(names, known.name, camelCase(known.name))
		}
		hint = configfile.DidYouMean(m.Name, names)
	}
	r.warn(m.Line, "unknown member %q in %q%s", m.Name, in, hint)
}

// readAuthMember reads one member of auth or oauth into r.server.Auth. name is the member's name in error messages.
func (r *rowReader) readAuthMember(name string, known *authMember, v configfile.Node) {
	a := r.server.Auth
	switch {
	case known.name == "type":
		a.Type = r.readWord(name, v, authTypes...)
	case known.name == "flow":
		a.Flow = r.readWord(name, v, authFlows...)
	case known.name == "scopes":
		a.Scopes = r.readScopeList(name, v)
	case known.name == "callback_port":
		a.CallbackPort = r.readPort(name, v)
	case known.name == "accept_endpoints":
		a.AcceptEndpoints = r.readEndpoints(name, v)
	case known.kind == authSecret:
		s, ok := v.TextValue()
		if !ok {
			r.refuse("%q must be a string", name)
		}
		*known.target(a) = r.readSecret("auth "+known.name, s)
	default:
		*known.target(a) = r.readText(name, v)
	}
	if a.CallbackPath != "" && !strings.HasPrefix(a.CallbackPath, "/") {
		a.CallbackPath = "/" + a.CallbackPath
	}
}

// readScopeList reads scopes from a list of strings, or from one string in which spaces separate the scopes.
func (r *rowReader) readScopeList(name string, v configfile.Node) []string {
	words, ok := v.TextValues()
	if s, isWord := v.TextValue(); isWord {
		words, ok = []string{s}, true
	}
	scopes := []string{}
	for _, word := range words {
		scopes = append(scopes, strings.Fields(r.expandVariables(name, word))...)
	}
	// RFC 6749, 3.3: printable ASCII without quotes and backslashes.
	strange := func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }
	if !ok || slices.ContainsFunc(scopes, func(s string) bool { return strings.ContainsFunc(s, strange) }) {
		r.refuse("%q must be a list of scopes, or a string with spaces between them", name)
	}
	return scopes
}

// readEndpoints reads two origins from a list, or from one string in which a space or comma separates the origins.
func (r *rowReader) readEndpoints(name string, v configfile.Node) drawbridge.SignInEndpoints {
	words, ok := v.TextValues()
	if s, isWord := v.TextValue(); isWord {
		words, ok = strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' }), true
	}
	for i, word := range words {
		words[i] = r.expandVariables(name, word)
	}
	e, err := ParseSignInEndpoints(words)
	if !ok || err != nil {
		r.refuse("%q must name two origins, the sign-in page's and the token endpoint's", name)
	}
	return e
}

// ParseSignInEndpoints parses two origins: first the sign-in page's, then the token endpoint's. Each origin is
// https://host or http://host, followed by a port if it is not the scheme's default port.
func ParseSignInEndpoints(texts []string) (drawbridge.SignInEndpoints, error) {
	var e drawbridge.SignInEndpoints
	if len(texts) != 2 {
		return e, errors.New("takes two origins, the sign-in page's and the token endpoint's: " +
			"https://accounts.example.com,https://tokens.example.com")
	}
	for i, into := range []*string{&e.Page, &e.Token} {
		u, err := url.Parse(strings.TrimSuffix(strings.TrimSpace(texts[i]), "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
			u.String() != u.Scheme+"://"+u.Host {
			return e, fmt.Errorf("takes origins such as https://accounts.example.com, not %.80q", texts[i])
		}
		*into = safehttp.Origin(u.String())
	}
	return e, nil
}

func (r *rowReader) readPort(name string, v configfile.Node) int {
	port, err := strconv.Atoi(v.Text)
	if v.Kind != configfile.Number && v.Kind != configfile.Text || err != nil || port < 1 || port > 65535 {
		r.refuse("%q must be a port, 1 to 65535", name)
		return 0
	}
	return port
}

// invalidReason returns the reason why the sign-in parameters are invalid or incomplete; "" if they are valid.
func (a *Auth) invalidReason() string {
	for _, m := range authMemberTable {
		if m.kind != authURL {
			continue
		}
		s := *m.target(a)
		u, err := url.Parse(s)
		if s != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
			u.Fragment != "" || strings.TrimSpace(s) != s) {
			return fmt.Sprintf(`%q in "auth" must be an http or https URL with a host`, m.name)
		}
	}
	if u, err := url.Parse(a.Resource); a.Resource != "" && a.Resource != "none" && (err != nil || !u.IsAbs() ||
		u.Fragment != "") {
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

// readCredentials reads the member credentials: PerCallerCredentials, or the name of stored credentials.
func (r *rowReader) readCredentials(v configfile.Node) {
	r.server.Credentials = r.readWord("credentials", v)
	if s := drawbridge.ServerID(r.server.Credentials); s != "" && s.Validate() != nil {
		r.refuse(`"credentials" must be %q, or the name of stored credentials: letters, numbers, dash, underscore and dot`,
			PerCallerCredentials)
	}
}
