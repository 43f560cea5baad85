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

// A Vault is where credentials are kept; *secrets.Vault is one. Get gives secrets.ErrNotFound for a name that nothing
// is kept under.
type Vault interface {
	Get(name string) ([]byte, error)
	Put(name string, value []byte) error
	Delete(name string) error
	// Lock waits until nobody else holds the name, in this process or another.
	Lock(ctx context.Context, name string) (unlock func(), err error)
	// Stamp changes with each Put and Delete of any process, and costs little.
	Stamp(name string) string
}

// A GrantKind is how a token is come by.
type GrantKind string

// The grants. Code, a person in a browser, is the default; the others need nobody: Credentials is a client in its own
// right, Enterprise one that the identity provider of a person's company introduces, Workload one whose surroundings
// speak for it.
const (
	CodeGrant              GrantKind = ""
	ClientCredentialsGrant GrantKind = "client_credentials"
	EnterpriseGrant        GrantKind = "enterprise"
	WorkloadGrant          GrantKind = "workload"
)

// A Server is what is signed in at, as its row says. URL is needed, or Issuer or TokenURL for a server that is no URL.
type Server struct {
	ID drawbridge.ServerID
	// URL is the server's address; empty for a stdio server, which is then given its token in its environment.
	URL string
	// Project is the file of a project that brings a stdio server: what it calls its servers is no claim to a person's
	// tokens.
	Project string
	// Principal is whose credential it is; empty for one that all callers share.
	Principal string
	// ExchangesCallerToken is for a caller from elsewhere, whom no page here can be shown: its tokens are come by
	// through its own, and end with the desk.
	ExchangesCallerToken bool
	// CredentialName is what the credential is kept under; empty means one of the server's own.
	CredentialName string
	Grant          GrantKind

	// What the row knows, all optional. A document is the address of a client id metadata document of ours.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	ClientID, ClientMetadataURL                                    string
	ClientSecret                                                   drawbridge.Secret
	// Resource is what tokens are asked for; empty means what the server says of itself, or its address, and "none"
	// nothing.
	Resource string
	// Scopes are the rights to ask for, with blanks between them; none means those that the server names, or, with
	// NoScopes, none.
	Scopes   string
	NoScopes bool
	// IDP is the issuer of the identity provider of an Enterprise.
	IDP string
	// RedirectURI is where people are to be sent back to; it fixes the port. CallbackPort and CallbackPath do so in
	// part.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
}

// identityKey is what tells servers apart to whom a token may be given.
func (s Server) identityKey() string {
	if s.URL != "" {
		return s.URL
	}
	if s.Project != "" {
		return "stdio:" + string(s.ID) + " of " + s.Project
	}
	return "stdio:" + string(s.ID)
}

// vaultName is what the credential is kept under.
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

// A Credential is the right to speak to one server: kept, renewed and asked for. Its methods may be called from several
// goroutines.
type Credential struct {
	manager     *Manager
	server      Server
	resolveAuth func(context.Context) (config.Auth, error)
	name        string
	client      *http.Client
	vault       Vault
	log         *slog.Logger
	// busy is held while one of us speaks to the authorization server.
	busy chan struct{}

	mu            sync.Mutex
	loaded        bool // kept and stamp are set
	hiddenRecord  func() credentialRecord
	stamp         string
	changed       chan struct{} // closed with each save of ours
	lastChallenge AuthChallenge // the last refusal of the server that asks who we are
	missingScopes []string      // the rights that it wanted last, beyond those granted
	scopeRequests map[string]int
	openFlows     map[string]*flowEnd // of sign-ins that are open here, by their state
	// recentRenewals are those of the last minute that refusals brought about, halted is one that went wrong for now.
	recentRenewals []time.Time
	pause          renewalPause
	callerToken    drawbridge.Secret // of a caller who is vouched for
	lastPrepared   preparedSignIn
}

// String names the credential, without what is kept.
func (c *Credential) String() string { return "credential " + c.name }

// Format is String, whatever the verb.
func (c *Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// A AuthChallenge is a server's refusal, with what it says about signing in.
type AuthChallenge struct {
	// Status is 401 or 403; 0 where the server was not asked.
	Status int
	// Challenges are the WWW-Authenticate headers, Hint the Mcp-Auth-Server header.
	Challenges     []string
	AuthServerHint string
	// Body is the beginning of the body.
	Body []byte
}

// Token gives the token to send, renewed where its time is nearly over. It is empty where nobody has signed in: the
// server then says what it wants. The error is for what is kept and cannot be read, and for a token that is over and
// could not be renewed.
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
		return r.Access, nil // it is still good
	}
	if _, needed := errors.AsType[*SignInRequiredError](err); needed {
		return "", nil // as if nobody had: what the server says then is needed to begin
	}
	if err != nil {
		return "", err
	}
	r, err = c.currentRecord()
	return r.Access, err
}

// isUnattended says whether tokens are come by without a person, and without what was got before.
func (c *Credential) isUnattended() bool {
	return c.server.Grant != CodeGrant || c.server.ExchangesCallerToken
}

func (c *Credential) currentRecord() (credentialRecord, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadRecord()
}

// ReplaceToken is told that the server refused the token used, which may be empty, with status 401 or 403, and gives
// another one that there is now. It gives none where signing in does not help. The error is a *SignInRequiredError
// where a person must sign in, with an address for that, or says why it is not known whether there will be another
// token.
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

// RequireToken is what somebody who has no server to ask says in its place: that a token is needed.
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

// withoutDeadline is a context that ends when ctx is cancelled, but not when its time is over: what a server takes to
// say what it speaks is no measure for what it takes to find out where to sign in.
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

// maxScopeRequests is how often the same rights are asked for: a server that grants them and wants them again wants
// for ever.
const maxScopeRequests = 2

// requestMoreScopes asks for more rights than were granted, with those that were: else they would be lost (scope
// accumulation of 2026-07-28).
func (c *Credential) requestMoreScopes(ctx context.Context, used string, demand AuthChallenge, wanted []string) error {
	r, err := c.currentRecord()
	switch {
	case err != nil:
		return err
	case r.Access != used && r.Access != "":
		return nil // somebody has asked for more meanwhile
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
		why := "the authorization server does not grant them"
		if granted {
			why = "the server wants them again each time they are granted"
		}
		return &SignInRequiredError{Server: c.server.ID, Scopes: wanted, Err: errors.New(why),
			usedToken: hashToken(used)}
	}
	return c.requireSignIn(ctx, demand, hashToken(used), mergeScopes(r.Scopes, wanted), nil)
}

// countScopeRequest notes that the rights that were lacking were asked for, and something given.
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

// requireSignIn prepares a sign-in and says that it is needed: the token of that mark does not do.
func (c *Credential) requireSignIn(ctx context.Context, demand AuthChallenge, used tokenHash, scopes []string,
	why error) error {
	needed := &SignInRequiredError{Server: c.server.ID, Err: why, usedToken: used}
	c.mu.Lock()
	if demand.Status == http.StatusForbidden { // which says less of where to sign in than the first one
		needed.Scopes = strings.Fields(bearerParams(demand.Challenges)["scope"])
		c.missingScopes = needed.Scopes
	} else {
		c.lastChallenge = demand
	}
	c.mu.Unlock()
	switch {
	case c.server.ExchangesCallerToken:
		needed.Err = cmp.Or(why, errors.New("the server refuses what the caller's token was exchanged for"))
		return needed
	case c.server.Grant != CodeGrant:
		needed.Err = cmp.Or(why, errors.New("the server refuses the token that the client was given"))
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
	needed.URL = flow.url
	return needed
}

// lockCredential makes the caller the only one who speaks to the authorization server about this credential.
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

// mergeScopes gives the texts of both lists, each once, in order.
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
