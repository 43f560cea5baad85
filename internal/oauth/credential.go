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
	// Lock waits until no other goroutine or process holds the lock of the name.
	Lock(ctx context.Context, name string) (unlock func(), err error)
	// Stamp returns a text that changes with each Put and Delete of any process. It must be cheap.
	Stamp(name string) string
}

// A GrantKind is the way in which a token is obtained.
type GrantKind string

// The grants. The default is CodeGrant, for which a person signs in with a browser or a device. The others need no
// person. ClientCredentialsGrant is for a client that acts for itself. EnterpriseGrant is for one that the identity
// provider of a company vouches for. WorkloadGrant is for one that has an identity token of its environment.
const (
	CodeGrant              GrantKind = ""
	ClientCredentialsGrant GrantKind = "client_credentials"
	EnterpriseGrant        GrantKind = "enterprise"
	WorkloadGrant          GrantKind = "workload"
)

// A Server describes how to sign in at one server, as its row configures it. URL is required; a stdio server has Issuer
// or TokenURL in its place.
type Server struct {
	ID drawbridge.ServerID
	// URL is the server's address. It is empty for a stdio server, which receives its token in its environment.
	URL string
	// Project is the project file that defines a stdio server. A project must not get the tokens of another project by
	// using the same server name.
	Project string
	// Principal is the owner of the credential; empty for one that all callers share.
	Principal string
	// ExchangesCallerToken is true for a remote caller, who cannot be shown a page. Its tokens are obtained in exchange
	// for its access token, and are kept in memory only.
	ExchangesCallerToken bool
	// CredentialName is the name that the credential is stored under; empty means a name derived from the server.
	CredentialName string
	// Borrowed is true for a stdio server that uses the sign-in at another server, stored as CredentialName. It can be
	// renewed, but neither begun nor ended here.
	Borrowed bool
	Grant    GrantKind
	// Owner is the principal whose acceptance of endpoints counts for callers whose token is exchanged.
	Owner string
	// FromProject is true for the row of a project, which cannot accept endpoints for the owner.
	FromProject bool
	// AcceptedEndpoints are two origins that the row accepts for the page and the token endpoint.
	AcceptedEndpoints drawbridge.SignInEndpoints

	// Settings of the row, all optional. ClientMetadataURL is the address of our client ID metadata document.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	ClientID, ClientMetadataURL                                    string
	ClientSecret                                                   drawbridge.Secret
	// Resource is the resource indicator of token requests. Empty means the one in the server's metadata, or its
	// address; "none" means that the parameter is omitted.
	Resource string
	// Scopes are the scopes to request, separated by spaces. If they are empty, the scopes that the server names are
	// requested, or none if NoScopes is set.
	Scopes   string
	NoScopes bool
	// IDP is the issuer of the identity provider for EnterpriseGrant.
	IDP string
	// RedirectURI is the redirect URI, which fixes the port. CallbackPort and CallbackPath fix one part each.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
}

// identityKey returns a text that identifies the server: a token is sent to no server with another key.
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

// A Credential holds the tokens for one server, renews them and prepares sign-ins. Its methods may be called from
// several goroutines.
type Credential struct {
	manager     *Manager
	server      Server
	resolveAuth func(context.Context) (config.Auth, error)
	name        string
	client      *http.Client
	vault       Vault
	log         *slog.Logger
	// busy is held while a goroutine of this process talks to the authorization server about this credential.
	busy chan struct{}

	mu            sync.Mutex
	loaded        bool // hiddenRecord and stamp are set
	hiddenRecord  func() credentialRecord
	stamp         string
	changed       chan struct{} // closed, and replaced, each time this process saves
	lastChallenge AuthChallenge // the last challenge of the server with status 401
	missingScopes []string      // the scopes that it required last with status 403
	scopeRequests map[string]int
	openFlows     map[string]*flowEnd // sign-ins that this process waits for, by state
	// recentRenewals are the times of the renewals of the last minute that followed a refusal. pause is set after a
	// renewal that failed for now.
	recentRenewals []time.Time
	pause          renewalPause
	callerToken    drawbridge.Secret // the access token to exchange
	lastPrepared   preparedSignIn
}

// String returns the name of the credential, without its content.
func (c *Credential) String() string { return "credential " + c.name }

// Format writes String, whatever the verb.
func (c *Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// An AuthChallenge is a server's refusal of a request, with its hints about signing in.
type AuthChallenge struct {
	// Status is 401 or 403; 0 if the server was not asked.
	Status int
	// Challenges are the WWW-Authenticate headers, AuthServerHint is the Mcp-Auth-Server header.
	Challenges     []string
	AuthServerHint string
	// Body is the beginning of the response body.
	Body []byte
}

// Token returns the token to send. It renews the token if it is about to expire. The token is empty if no sign-in was
// completed: the server's refusal is then needed to begin one. An error means that the stored credential cannot be
// read, or that the token has expired and could not be renewed.
func (c *Credential) Token(ctx context.Context) (string, error) {
	r, err := c.currentRecord()
	if err != nil || r.Access == "" {
		return "", err
	}
	now := c.manager.o.Now()
	if r.renewalDueIn(now) > 0 || r.Refresh == "" && !c.isUnattended() {
		return r.Access, nil
	}
	err = c.renewToken(ctx, r.Access, false)
	if _, later := errors.AsType[temporaryError](err); later && now.Before(r.Expires) {
		return r.Access, nil // it is still valid
	}
	if _, needed := errors.AsType[*SignInRequiredError](err); needed {
		return "", nil // as without a sign-in: the server's refusal is needed to begin one
	}
	if err != nil {
		return "", err
	}
	r, err = c.currentRecord()
	return r.Access, err
}

// isUnattended reports whether tokens are obtained without a person and without an earlier grant.
func (c *Credential) isUnattended() bool {
	return c.server.Grant != CodeGrant || c.server.ExchangesCallerToken
}

func (c *Credential) currentRecord() (credentialRecord, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadRecord()
}

// ReplaceToken handles a response of the server with status 401 or 403 to a request with the token used, which may be
// empty. It returns another token to retry with, or an empty one if signing in does not help. The error is a
// *SignInRequiredError, with an address, if a person must sign in. Any other error means that a new token could not be
// obtained for now.
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

// RequireToken is ReplaceToken for a server that sends no HTTP response: it reports that a token is required.
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

// withoutDeadline returns a context that ends when ctx is cancelled, but not when its deadline passes. The deadline of
// the first request to a server is too short for finding out where to sign in.
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

// maxScopeRequests is how often the same scopes are requested. Otherwise a server that refuses the token in spite of
// them would cause an endless loop.
const maxScopeRequests = 2

// requestMoreScopes requests more scopes, together with those that were granted: else these would be lost (scope
// accumulation of 2026-07-28).
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

// countScopeRequest counts a grant that was requested with the missing scopes.
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

// requireSignIn prepares a sign-in and returns the error that it is required. used is the hash of the refused token.
func (c *Credential) requireSignIn(ctx context.Context, demand AuthChallenge, used tokenHash, scopes []string,
	why error) error {
	needed := &SignInRequiredError{Server: c.server.ID, Err: why, usedToken: used}
	c.mu.Lock()
	if demand.Status == http.StatusForbidden { // it has fewer hints on where to sign in than a 401
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

// lockCredential locks the credential in this process and in the vault: only its holder talks to the authorization
// server about it.
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

// mergeScopes returns the scopes of both lists, each once, in order.
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
