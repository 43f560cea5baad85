package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// A Vault stores credentials; *secrets.Vault is one. Get returns secrets.ErrNotFound for a name without a value.
type Vault interface {
	Get(name string) ([]byte, error)
	Put(name string, value []byte) error
	Delete(name string) error
	// Lock locks the name. It first waits until no other goroutine or process has the name locked.
	Lock(ctx context.Context, name string) (unlock func(), err error)
	// Stamp returns a text that changes with each Put and Delete of the name by any process. It is called before each
	// use of the stored value, and must be cheap.
	Stamp(name string) string
}

// A GrantKind names the way in which a token is obtained.
type GrantKind string

// The grants. With CodeGrant, the default, a person signs in with a browser or a device. The other grants need no
// person. ClientCredentialsGrant is for a client that acts for itself. EnterpriseGrant is for a client with an
// assertion of a company's identity provider. WorkloadGrant is for a client with an identity token from its
// environment.
const (
	CodeGrant              GrantKind = ""
	ClientCredentialsGrant GrantKind = "client_credentials"
	EnterpriseGrant        GrantKind = "enterprise"
	WorkloadGrant          GrantKind = "workload"
)

// A Server describes how to sign in at one MCP server, as the server's configuration requires. Either URL is set, or
// the server is a stdio server. A stdio server has no URL; Issuer or TokenURL is set, or Borrowed is true.
type Server struct {
	ID drawbridge.ServerID
	// URL is the server's address. It is empty for a stdio server, which receives its token in its environment.
	URL string
	// Project is the path of the project file that defines a stdio server. It is part of the identity of the server:
	// another project may define a server of the same name, which must not get the tokens.
	Project string
	// Principal is the caller that the credential belongs to; empty if all callers share the credential.
	Principal string
	// ExchangesCallerToken is true if Principal is a remote caller, to whom Drawbridge cannot show a sign-in page. The
	// tokens for the server are then obtained in exchange for the caller's access token, and are stored in memory only.
	ExchangesCallerToken bool
	// CredentialName is the name that the credential is stored under; empty means a name derived from the server.
	CredentialName string
	// Borrowed is true for a stdio server that uses the credential of another server, stored as CredentialName. The
	// stdio server can renew the credential, but cannot begin or end a sign-in.
	Borrowed bool
	Grant    GrantKind
	// Owner is the principal who runs this Drawbridge. Endpoints that the owner accepted are also accepted for callers
	// whose token is exchanged.
	Owner string
	// FromProject is true if a project file configures the server. Such a configuration cannot accept endpoints,
	// because its author may not be the owner.
	FromProject bool
	// AcceptedEndpoints are the two origins, of the sign-in page and of the token endpoint, that the configuration
	// accepts although they differ.
	AcceptedEndpoints drawbridge.SignInEndpoints

	// Settings of the server's configuration, all optional. ClientMetadataURL is the address of Drawbridge's client ID
	// metadata document.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	ClientID, ClientMetadataURL                                    string
	ClientSecret                                                   drawbridge.Secret
	// Resource is the resource indicator of token requests. Empty means the resource in the server's metadata, or else
	// the server's address. "none" omits the parameter.
	Resource string
	// Scopes are the scopes to request, separated by spaces. If Scopes is empty, the scopes that the server names are
	// requested, or no scopes if NoScopes is set.
	Scopes   string
	NoScopes bool
	// IDP is the issuer of the identity provider for EnterpriseGrant.
	IDP string
	// RedirectURI is the whole redirect URI. CallbackPort and CallbackPath set only its port and its path.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
}

// identityKey returns a text that identifies the server. A token that is stored for one key is not sent to a server
// with another key, unless Borrowed is true for that server.
func (s Server) identityKey() string {
	if s.URL != "" {
		return s.URL
	}
	if s.Project != "" {
		return "stdio:" + string(s.ID) + " of " + s.Project
	}
	return "stdio:" + string(s.ID)
}

// vaultName returns the name that the credential is stored under.
func (s Server) vaultName() string {
	name := s.CredentialName
	if name == "" {
		sum := sha256.Sum256([]byte(s.identityKey() + "\x00" + s.Issuer + "\x00" + s.ClientID))
		name = string(s.ID) + "-" + hex.EncodeToString(sum[:4])
	}
	if s.Principal != "" {
		sum := sha256.Sum256([]byte(s.Principal))
		name += "@" + hex.EncodeToString(sum[:8])
	}
	return "signin/" + name
}

// A Credential stores the tokens for one server, renews them and prepares sign-ins. Its methods may be called from
// several goroutines.
type Credential struct {
	manager     *Manager
	server      Server
	resolveAuth func(context.Context) (config.Auth, error)
	name        string
	client      *http.Client
	vault       Vault
	log         *slog.Logger
	// busy contains an element while a goroutine of this process holds the lock of lockCredential.
	busy chan struct{}

	mu            sync.Mutex
	loaded        bool // hiddenRecord and stamp are set
	hiddenRecord  func() credentialRecord
	stamp         string
	checked       time.Time     // when recentRecord compared the stamp; zero after an error
	changed       chan struct{} // closed and replaced each time this process stores or deletes the record
	lastChallenge AuthChallenge // the last challenge of the server with status 401
	missingScopes []string      // the scopes in the last response of the server with status 403
	scopeRequests map[string]int
	openFlows     map[string]*flowEnd // sign-ins that this process waits for, by state
	// recentRenewals are the times of the last minute at which a refused token was renewed. pause is set after a
	// renewal that failed with a temporary error.
	recentRenewals []time.Time
	pause          renewalPause
	callerToken    drawbridge.Secret // the access token to exchange
	lastPrepared   preparedSignIn
}

// String returns the name of the credential, without its content.
func (c *Credential) String() string { return "credential " + c.name }

// Format writes the result of String for every verb.
func (c *Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// An AuthChallenge contains the parts of a server's 401 or 403 response that describe how to sign in.
type AuthChallenge struct {
	// Status is the status of the response; 0 if no request was sent to the server.
	Status int
	// Challenges are the WWW-Authenticate headers, AuthServerHint is the Mcp-Auth-Server header.
	Challenges     []string
	AuthServerHint string
	// Body is the beginning of the response body.
	Body []byte
}

// Token returns the access token to send to the server, and first renews a token that expires soon. It returns an empty
// token if a person must sign in. The caller then sends its request without a token, to get the server's challenge.
// Token returns an error if the stored credential cannot be read, or if an expired token could not be renewed for a
// temporary reason.
func (c *Credential) Token(ctx context.Context) (string, error) {
	r, err := c.recentRecord()
	if err != nil || r.Access == "" {
		return "", err
	}
	now := c.manager.o.Now()
	if r.renewalDueIn(now) > 0 || r.Refresh == "" && !c.isUnattended() {
		return r.Access, nil
	}
	err = c.renewToken(ctx, r.Access, false)
	if _, later := errors.AsType[temporaryError](err); later && now.Before(r.Expires) {
		return r.Access, nil // the token is still valid
	}
	if _, needed := errors.AsType[*SignInRequiredError](err); needed {
		return "", nil // a sign-in needs the server's challenge
	}
	if err != nil {
		return "", err
	}
	r, err = c.currentRecord()
	return r.Access, err
}

// isUnattended reports whether new tokens are obtained without a person and without a refresh token.
func (c *Credential) isUnattended() bool {
	return c.server.Grant != CodeGrant || c.server.ExchangesCallerToken
}

// recordFreshness is how long Token uses a record without looking for a change by another process. If the record was
// replaced in that time, the server refuses the old token, and ReplaceToken finds the new one.
const recordFreshness = 100 * time.Millisecond

// recentRecord is currentRecord, except that a change by another process may be recordFreshness old.
func (c *Credential) recentRecord() (credentialRecord, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded && time.Since(c.checked) < recordFreshness {
		return c.hiddenRecord(), nil
	}
	r, err := c.loadRecord()
	if c.checked = time.Now(); err != nil {
		c.checked = time.Time{}
	}
	return r, err
}

func (c *Credential) currentRecord() (credentialRecord, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadRecord()
}

// ReplaceToken handles a response of the server with status 401 or 403. used is the token of the refused request; it
// may be empty. ReplaceToken returns another token for a retry, or an empty token if a sign-in does not help. The error
// is a *SignInRequiredError if a person must sign in. Any other error means that a later attempt may obtain a token.
func (c *Credential) ReplaceToken(ctx context.Context, used string, status int, header http.Header,
	body []byte) (another string, err error) {
	ctx, cancel := withoutDeadline(ctx)
	defer cancel()
	demand := parseChallenge(status, header, body)
	if status == http.StatusForbidden {
		challenge := bearerParams(demand.Challenges)
		if challenge["error"] != "insufficient_scope" {
			return "", nil
		}
		err = c.requestMoreScopes(ctx, used, demand, strings.Fields(challenge["scope"]))
	} else {
		err = c.renewOrRequireSignIn(ctx, used, demand)
	}
	if err != nil {
		return "", err
	}
	r, err := c.currentRecord()
	return r.Access, err
}

// RequireToken is ReplaceToken for a server without HTTP responses, such as a stdio server. It acts as if the server
// had refused a request without a token.
func (c *Credential) RequireToken(ctx context.Context) (token string, err error) {
	return c.ReplaceToken(ctx, "", http.StatusUnauthorized, nil, nil)
}

func (c *Credential) renewOrRequireSignIn(ctx context.Context, used string, demand AuthChallenge) error {
	err := c.renewToken(ctx, used, true)
	if needed, ok := errors.AsType[*SignInRequiredError](err); ok {
		return c.requireSignIn(ctx, demand, needed.usedToken, nil, needed.Err)
	}
	return err
}

// withoutDeadline returns a context that is cancelled when ctx is cancelled, but ignores ctx's deadline. It has a
// longer timeout of its own. The deadline of the first request to a server is too short for the requests that find its
// authorization server.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	calm, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*safehttp.RequestTimeout)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return calm, func() {
		stop()
		cancel()
	}
}

// maxScopeRequests is the maximum number of sign-ins that request the same missing scopes. Without the limit, a server
// that refuses every token with these scopes would cause an endless loop.
const maxScopeRequests = 2

// requestMoreScopes prepares a sign-in for the scopes wanted, which the server requires, and returns a
// *SignInRequiredError. The sign-in also requests the scopes already granted, since the new token replaces the old one
// (specification 2026-07-28, scope accumulation). If another call has already replaced the token used,
// requestMoreScopes returns nil.
func (c *Credential) requestMoreScopes(ctx context.Context, used string, demand AuthChallenge, wanted []string) error {
	r, err := c.currentRecord()
	switch {
	case err != nil:
		return err
	case r.Access != used && r.Access != "":
		return nil // another call has obtained a new token meanwhile
	}
	c.mu.Lock()
	key := strings.Join(slices.Sorted(slices.Values(wanted)), " ")
	if c.scopeRequests == nil {
		c.scopeRequests = map[string]int{}
	}
	times := c.scopeRequests[key]
	granted := len(wanted) > 0 && !slices.ContainsFunc(wanted,
		func(s string) bool { return !slices.Contains(r.Scopes, s) })
	c.mu.Unlock()
	if times >= maxScopeRequests || granted && times > 0 {
		why := "the authorization server does not grant them: ask its operator for these rights"
		if granted {
			why = "the server wants them again each time they are granted"
		}
		return &SignInRequiredError{Server: c.server.ID, Scopes: wanted, Err: errors.New(why),
			usedToken: hashToken(used)}
	}
	return c.requireSignIn(ctx, demand, hashToken(used), mergeScopes(r.Scopes, wanted), nil)
}

// countScopeRequest is called after a sign-in that requested the given scopes. If they include all scopes that the
// server required in its last response with status 403, it counts the sign-in for maxScopeRequests.
func (c *Credential) countScopeRequest(scopes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.missingScopes) == 0 || slices.ContainsFunc(c.missingScopes,
		func(s string) bool { return !slices.Contains(scopes, s) }) {
		return
	}
	if c.scopeRequests == nil {
		c.scopeRequests = map[string]int{}
	}
	c.scopeRequests[strings.Join(slices.Sorted(slices.Values(c.missingScopes)), " ")]++
}

// requireSignIn prepares a sign-in and returns a *SignInRequiredError with its address. If the authorization server is
// unavailable, it returns a temporaryError. used is the hash of the refused token. why, which may be nil, is the reason
// to report in the error.
func (c *Credential) requireSignIn(ctx context.Context, demand AuthChallenge, used tokenHash, scopes []string,
	why error) error {
	needed := &SignInRequiredError{Server: c.server.ID, Err: why, usedToken: used}
	c.mu.Lock()
	if demand.Status == http.StatusForbidden { // a 403 has fewer hints on where to sign in than a 401
		needed.Scopes = strings.Fields(bearerParams(demand.Challenges)["scope"])
		c.missingScopes = needed.Scopes
	} else {
		c.lastChallenge = demand
	}
	c.mu.Unlock()
	switch {
	case c.server.Borrowed:
		needed.Err, needed.MissingCredential = why, c.server.CredentialName
		return needed
	case c.server.ExchangesCallerToken:
		needed.Err = cmp.Or(why, errors.New("the server refuses the token that the caller's token was exchanged for"))
		return needed
	case c.server.Grant != CodeGrant:
		needed.Err = cmp.Or(why, errors.New("the server refuses the token that was issued to the client"))
		return needed
	}
	flow, err := c.prepareSignInOnce(ctx, demand, scopes)
	_, later := errors.AsType[unavailableError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case later:
		return temporaryError{stepPrepare, err}
	default:
		needed.Err = err
		return needed
	}
	needed.URL, needed.Elsewhere = flow.url, flow.elsewhere
	if why == nil && c.server.CredentialName != "" && used == hashToken("") {
		needed.Err = fmt.Errorf("no sign-in is stored as %q", c.server.CredentialName)
	}
	return needed
}

// lockCredential locks the credential in this process and in the vault. Requests about the credential are sent to the
// authorization server under this lock, except the polling of a device sign-in.
func (c *Credential) lockCredential(ctx context.Context) (unlock func(), err error) {
	select {
	case c.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	free, err := c.vault.Lock(ctx, c.name)
	if err != nil {
		<-c.busy
		return nil, fmt.Errorf("lock the credential: %w", err)
	}
	return func() {
		free()
		<-c.busy
	}, nil
}

// mergeScopes returns the scopes of a, then the scopes of b that are not in a. Each scope occurs once.
func mergeScopes(a, b []string) []string {
	var all []string
	for _, list := range [][]string{a, b} {
		for _, s := range list {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}
