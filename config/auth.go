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

// PerCallerCredentials is the value of Server.Credentials that sends each caller's own credentials to the server.
const PerCallerCredentials = "per-caller"

// An Auth configures the sign-in at a server. It is read from the members "auth" and "oauth" of a row; "auth" has
// precedence. Empty fields are discovered from the server's metadata, or have a default.
type Auth struct {
	// Type is "oauth", "client_credentials", "enterprise", "workload", "apikey", or "none" for no sign-in.
	Type string
	// CredentialID names a stored credential. For the type "apikey", the credential is a secret in the vault. It is
	// sent in the header Header, or passed to the program in the environment variable Variable. For a stdio row without
	// Issuer and TokenURL, CredentialID is the name of an existing sign-in, possibly at another server.
	CredentialID, Header, Variable string
	// Issuer and the four endpoint addresses are http or https URLs with a host. They override the server's own
	// metadata.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	// ClientID and ClientSecret are the credentials of a registered client. A client with a PrivateKey, in PEM, signs
	// assertions instead of sending a secret. If Server.DeferredValues lists such a value, as "auth client_id" and the
	// like, the field contains the unresolved text.
	ClientID, ClientSecret, PrivateKey string
	// IDPIssuer is an enterprise's identity provider; IDPClientID and IDPClientSecret are Drawbridge's client
	// credentials at the provider. IDToken identifies the person to the provider. For the type "workload", IDToken
	// identifies the program to the server's own issuer.
	IDPIssuer, IDPClientID, IDPClientSecret, IDToken string
	// ClientMetadataURL is the URL of a client ID metadata document; the URL is used as the client id.
	ClientMetadataURL string
	// Scopes are the requested scopes: nil means the scopes that the server names, an empty list means no scopes.
	Scopes []string
	// Resource is the resource parameter that names the server to the token issuer: an absolute URI without a fragment.
	// "none" omits the parameter, for an issuer that does not support it.
	Resource string
	// RedirectURI is the http or https URL to which the browser returns. CallbackPort and CallbackPath are the port and
	// path of the local listener for it; port 0 means a free port.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
	// Flow is how a person signs in: "browser", "device" or "paste".
	Flow string
	// AcceptEndpoints are the origins of the sign-in page and of the token endpoint, accepted although the origins
	// differ. In a project's row they have no effect.
	AcceptEndpoints drawbridge.SignInEndpoints
}

// String returns the type only, since other fields may be secret.
func (a Auth) String() string { return fmt.Sprintf("auth %q", a.Type) }

// GoString returns the same as String.
func (a Auth) GoString() string { return a.String() }

// An authMember describes one member of auth or oauth: its documentation, and the field of Auth that stores its text.
type authMember struct {
	name, typ, doc string
	// kind is the kind of value.
	kind authValueKind
	// target returns a pointer to the field that stores a text; nil for scopes, callback_port and accept_endpoints.
	target func(*Auth) *string
}

// An authValueKind is a kind of value of an authMember.
type authValueKind uint8

const (
	authKeyword authValueKind = iota // one of a fixed set of words
	authText                         // an opaque text
	authSecret                       // a text that may contain references and may be a secret
	authURL                          // an http or https URL
)

// authMemberTable lists all members of auth and oauth. In files, the names may also be written in camelCase.
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
		"the name of the server at the issuer, if it differs from the one that the server publishes; `none` if the issuer does not support the parameter",
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

// CanonicalAuthMember returns the snake_case name of a member of auth or oauth that is written in snake_case or
// camelCase. public reports whether the member's value is never a secret; the user info, query and fragment of a URL
// may still be secret. The name is empty for an unknown member.
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

// readAuthMember reads one member. name is the member's name in error messages.
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

// ParseSignInEndpoints parses two origins: first the sign-in page's, then the token endpoint's. Each is https://host or
// http://host, with a port if it is not the scheme's default port.
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

// invalidReason returns why no sign-in is possible with these members, or "".
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

// readCredentials reads the member credentials, which selects the credentials that are sent to the server.
func (r *rowReader) readCredentials(v configfile.Node) {
	r.server.Credentials = r.readWord("credentials", v)
	if s := drawbridge.ServerID(r.server.Credentials); s != "" && s.Validate() != nil {
		r.refuse(`"credentials" must be %q, or the name of stored credentials: letters, numbers, dash, underscore and dot`,
			PerCallerCredentials)
	}
}
