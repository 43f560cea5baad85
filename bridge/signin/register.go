package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A client is who we are to an authorization server.
type client struct {
	ID     string `json:"id,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Key is the private key that it signs with in the place of a secret, in PEM. It is never kept.
	Key string `json:"-"`
	// Method is how the client proves itself, as its registration says; empty means as the server's metadata allow.
	Method string `json:"method,omitempty"`
	// Redirects are where people may be sent back to, for a client that was registered.
	Redirects []string `json:"redirects,omitempty"`
	// Expires is when the secret does; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	// Registered says that we did it, and may do it again.
	Registered bool `json:"registered,omitempty"`
}

// identify says who we are at a site, in the order of the specification: the client that the row names, a document that
// describes us, one registered before, one registered now. Redirects are where people may be sent back to, the preferred
// one first; a server may want another of them.
func (c *Credential) identify(ctx context.Context, s site, r record, redirects []string) (client, error) {
	switch {
	case c.site.ClientID != "":
		return c.who(ctx)
	case c.site.Document != "" && s.Documents:
		return client{ID: c.site.Document, Method: "none"}, nil
	case r.ClientAt == s.Issuer && c.usable(r.Client, redirects):
		return r.Client, nil
	case s.ClientID != "":
		return client{ID: s.ClientID, Method: "none"}, nil
	case s.Registration == "":
		return client{}, sentence(`OAuth provider requires client_id: it registers no clients, so name one in the row's "auth"`)
	}
	return c.register(ctx, s, redirects)
}

// usable says whether a client that was registered can be used again for one of these redirects.
func (c *Credential) usable(known client, redirects []string) bool {
	if known.ID == "" || !known.Registered || !known.Expires.IsZero() && c.desk.o.Now().Add(time.Minute).After(known.Expires) {
		return false
	}
	return len(redirects) == 0 || slices.Contains(known.Redirects, redirects[0])
}

// register makes us known to an authorization server (RFC 7591). Where it does not take an address of the loopback
// interface, it may take the name of it.
func (c *Credential) register(ctx context.Context, s site, redirects []string) (client, error) {
	known, err := c.registerWith(ctx, s, redirects)
	refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err)
	if named := byName(redirects); ok && strings.Contains(refused.ErrorCode, "redirect") && named != nil {
		known, err = c.registerWith(ctx, s, named)
	}
	if err == nil {
		return known, nil
	}
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return client{}, fmt.Errorf("register as a client: %w", &refusal{status: 400, code: refused.ErrorCode, description: refused.ErrorDescription})
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return client{}, fmt.Errorf("register as a client: %w", outer.Err)
	}
	// What else the error says repeats the answer, which may hold a secret.
	return client{}, errors.New("register as a client: the authorization server's answer was no registration")
}

func (c *Credential) registerWith(ctx context.Context, s site, redirects []string) (client, error) {
	method := "none"
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, "none") {
		method = s.Methods[0]
		for _, liked := range []string{"client_secret_basic", "client_secret_post"} {
			if slices.Contains(s.Methods, liked) {
				method = liked
				break
			}
		}
	}
	answer, err := oauthex.RegisterClient(ctx, s.Registration, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: redirects, TokenEndpointAuthMethod: method, GrantTypes: c.grants(s), ResponseTypes: []string{"code"},
		ClientName: "Drawbridge", SoftwareID: "drawbridge", SoftwareVersion: c.desk.o.Version, ApplicationType: "native",
		Scope: c.site.Scopes,
	}, c.client)
	if err != nil {
		return client{}, err
	}
	return client{
		ID: answer.ClientID, Secret: answer.ClientSecret, Method: cmp.Or(answer.TokenEndpointAuthMethod, method),
		Redirects: redirects, Expires: answer.ClientSecretExpiresAt, Registered: true,
	}, nil
}

func (c *Credential) grants(s site) []string {
	grants := []string{"authorization_code", "refresh_token"}
	if s.Device != "" {
		grants = append(grants, deviceGrant)
	}
	return grants
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// byName has the name of the loopback interface in the place of its address; nil where nothing changes.
func byName(redirects []string) []string {
	var named []string
	for _, r := range redirects {
		if n := strings.Replace(r, "://127.0.0.1:", "://localhost:", 1); n != r {
			named = append(named, n)
		}
	}
	return named
}

// style says how a client proves itself.
func (known client) style(s site) oauth2.AuthStyle {
	method := known.Method
	if method == "" && known.Secret != "" && len(s.Methods) > 0 {
		for _, liked := range []string{"client_secret_basic", "client_secret_post"} {
			if slices.Contains(s.Methods, liked) {
				method = liked
				break
			}
		}
	}
	if known.Secret == "" || method == "client_secret_post" || method == "none" {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader // the default of RFC 7591, 2
}

// secret is what the client proves itself with: nothing, where it is registered as one that does not.
func (known client) secret() string {
	if known.Method == "none" {
		return ""
	}
	return known.Secret
}
