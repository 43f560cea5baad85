package signin

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
	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A Vault is where credentials are kept; *secrets.Vault is one. Get gives secrets.ErrNone for a name that nothing is kept
// under.
type Vault interface {
	Get(name string) ([]byte, error)
	Put(name string, value []byte) error
	Delete(name string) error
	// Lock waits until nobody else holds the name, in this process or another.
	Lock(ctx context.Context, name string) (unlock func(), err error)
	// Stamp changes with each Put and Delete of any process, and costs little.
	Stamp(name string) string
}

// A Grant is how a token is come by.
type Grant string

// The grants. Code, a person in a browser, is the default; the others need nobody: Credentials is a client in its own right,
// Enterprise one that the identity provider of a person's company introduces, Workload one whose surroundings speak for it.
const (
	Code        Grant = ""
	Credentials Grant = "client_credentials"
	Enterprise  Grant = "enterprise"
	Workload    Grant = "workload"
)

// A Server is what is signed in at, as its row says. URL is needed, or Issuer or TokenURL for a server that is no URL.
type Server struct {
	ID drawbridge.ServerID
	// URL is the server's address; empty for a stdio server, which is then given its token in its environment.
	URL string
	// Project is the file of a project that brings a stdio server: what it calls its servers is no claim to a person's tokens.
	Project string
	// Principal is whose credential it is; empty for one that all callers share.
	Principal string
	// Vouched is for a caller from elsewhere, whom no page here can be shown: its tokens are come by through its own, and end
	// with the desk.
	Vouched bool
	// Name is what the credential is kept under; empty means one of the server's own.
	Name  string
	Grant Grant

	// What the row knows, all optional. A document is the address of a client id metadata document of ours.
	Issuer, AuthorizationURL, TokenURL, DeviceURL, RegistrationURL string
	ClientID, Document                                             string
	ClientSecret                                                   drawbridge.Secret
	// Resource is what tokens are asked for; empty means what the server says of itself, or its address, and "none" nothing.
	Resource string
	// Scopes are the rights to ask for, with blanks between them; none means those that the server names, or, with NoScopes,
	// none.
	Scopes   string
	NoScopes bool
	// IDP is the issuer of the identity provider of an Enterprise.
	IDP string
	// RedirectURI is where people are to be sent back to; it fixes the port. CallbackPort and CallbackPath do so in part.
	RedirectURI  string
	CallbackPort int
	CallbackPath string
}

// key is what tells servers apart to whom a token may be given.
func (s Server) key() string {
	if s.URL != "" {
		return s.URL
	}
	if s.Project != "" {
		return "stdio:" + string(s.ID) + " of " + s.Project
	}
	return "stdio:" + string(s.ID)
}

// name is what the credential is kept under.
func (s Server) name() string {
	name := s.Name
	if name == "" {
		sum := sha256.Sum256([]byte(s.key() + "\x00" + s.Issuer + "\x00" + s.ClientID))
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
	desk   *Desk
	site   Server
	find   func(context.Context) (config.Auth, error)
	name   string
	client *http.Client
	vault  Vault
	log    *slog.Logger
	// busy is held while one of us speaks to the authorization server.
	busy chan struct{}

	mu      sync.Mutex
	known   bool // kept and stamp are set
	kept    func() record
	stamp   string
	changed chan struct{} // closed with each save of ours
	demand  Demand        // the last refusal of the server that asks who we are
	lacking []string      // the rights that it wanted last, beyond those granted
	asked   map[string]int
	endings map[string]*ending // of sign-ins that are open here, by their state
	// renewals are those of the last minute that refusals brought about, halted is one that went wrong for now.
	renewals []time.Time
	halted   halt
	proof    drawbridge.Secret // of a caller who is vouched for
	found    found
}

// String names the credential, without what is kept.
func (c *Credential) String() string { return "credential " + c.name }

// Format is String, whatever the verb.
func (c *Credential) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// A Demand is a server's refusal, with what it says about signing in.
type Demand struct {
	// Status is 401 or 403; 0 where the server was not asked.
	Status int
	// Challenges are the WWW-Authenticate headers, Hint the Mcp-Auth-Server header.
	Challenges []string
	Hint       string
	// Body is the beginning of the body.
	Body []byte
}

// Token gives the token to send, renewed where its time is nearly over. It is empty where nobody has signed in: the server
// then says what it wants. The error is for what is kept and cannot be read, and for a token that is over and could not be
// renewed.
func (c *Credential) Token(ctx context.Context) (string, error) {
	r, err := c.current()
	if err != nil || r.Access == "" {
		return "", err
	}
	now := c.desk.o.Now()
	if r.freshFor(now) > 0 || r.Refresh == "" && !c.unaided() {
		return r.Access, nil
	}
	err = c.renew(ctx, r.Access, false)
	if _, later := errors.AsType[laterError](err); later && now.Before(r.Expires) {
		return r.Access, nil // it is still good
	}
	if _, needed := errors.AsType[*NeededError](err); needed {
		return "", nil // as if nobody had: what the server says then is needed to begin
	}
	if err != nil {
		return "", err
	}
	r, err = c.current()
	return r.Access, err
}

// unaided says whether tokens are come by without a person, and without what was got before.
func (c *Credential) unaided() bool { return c.site.Grant != Code || c.site.Vouched }

func (c *Credential) current() (record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load()
}

// Refused is told that the server refused the token used, which may be empty, with status 401 or 403, and gives another one
// that there is now. It gives none where signing in does not help. The error is a *NeededError where a person must sign in,
// with an address for that, or says why it is not known whether there will be another token.
func (c *Credential) Refused(ctx context.Context, used string, status int, header http.Header, body []byte) (another string, err error) {
	ctx, cancel := unhurried(ctx)
	defer cancel()
	demand := demandIn(status, header, body)
	if status == http.StatusForbidden {
		challenge := bearer(demand.Challenges)
		if challenge["error"] != "insufficient_scope" {
			return "", nil
		}
		err = c.stepUp(ctx, used, demand, strings.Fields(challenge["scope"]))
	} else {
		err = c.renewed(ctx, used, demand)
	}
	if err != nil {
		return "", err
	}
	r, err := c.current()
	return r.Access, err
}

// Demand is what somebody who has no server to ask says in its place: that a token is needed.
func (c *Credential) Demand(ctx context.Context) (token string, err error) {
	return c.Refused(ctx, "", http.StatusUnauthorized, nil, nil)
}

func (c *Credential) renewed(ctx context.Context, used string, demand Demand) error {
	err := c.renew(ctx, used, true)
	if needed, ok := errors.AsType[*NeededError](err); ok {
		return c.need(ctx, demand, needed.used, nil, needed.Err)
	}
	return err
}

// unhurried is a context that ends when ctx is cancelled, but not when its time is over: what a server takes to say what it
// speaks is no measure for what it takes to find out where to sign in.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	calm, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*egress.Time)
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

// maxStepUps is how often the same rights are asked for: a server that grants them and wants them again wants for ever.
const maxStepUps = 2

// stepUp asks for more rights than were granted, with those that were: else they would be lost (scope accumulation of
// 2026-07-28).
func (c *Credential) stepUp(ctx context.Context, used string, demand Demand, wanted []string) error {
	r, err := c.current()
	switch {
	case err != nil:
		return err
	case r.Access != used && r.Access != "":
		return nil // somebody has asked for more meanwhile
	}
	c.mu.Lock()
	key := strings.Join(slices.Sorted(slices.Values(wanted)), " ")
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	times := c.asked[key]
	granted := len(wanted) > 0 && !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(r.Scopes, s) })
	c.mu.Unlock()
	if times >= maxStepUps || granted && times > 0 {
		why := "the authorization server does not grant them"
		if granted {
			why = "the server wants them again each time they are granted"
		}
		return &NeededError{Server: c.site.ID, Scopes: wanted, Err: errors.New(why), used: markOf(used)}
	}
	return c.need(ctx, demand, markOf(used), union(r.Scopes, wanted), nil)
}

// countStepUp notes that the rights that were lacking were asked for, and something given.
func (c *Credential) countStepUp(scopes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lacking) == 0 || slices.ContainsFunc(c.lacking, func(s string) bool { return !slices.Contains(scopes, s) }) {
		return
	}
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[strings.Join(slices.Sorted(slices.Values(c.lacking)), " ")]++
}

// need prepares a sign-in and says that it is needed: the token of that mark does not do.
func (c *Credential) need(ctx context.Context, demand Demand, used mark, scopes []string, why error) error {
	needed := &NeededError{Server: c.site.ID, Err: why, used: used}
	c.mu.Lock()
	if demand.Status == http.StatusForbidden { // which says less of where to sign in than the first one
		needed.Scopes = strings.Fields(bearer(demand.Challenges)["scope"])
		c.lacking = needed.Scopes
	} else {
		c.demand = demand
	}
	c.mu.Unlock()
	switch {
	case c.site.Vouched:
		needed.Err = cmp.Or(why, errors.New("the server refuses what the caller's token was exchanged for"))
		return needed
	case c.site.Grant != Code:
		needed.Err = cmp.Or(why, errors.New("the server refuses the token that the client was given"))
		return needed
	}
	flow, err := c.beginOnce(ctx, demand, scopes)
	_, later := errors.AsType[awayError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case later:
		return laterError{stepPrepare, err}
	default:
		needed.Err = err
		return needed
	}
	needed.URL = flow.url
	return needed
}

// lock makes the caller the only one who speaks to the authorization server about this credential.
func (c *Credential) lock(ctx context.Context) (unlock func(), err error) {
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

// union gives the texts of both lists, each once, in order.
func union(a, b []string) []string {
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
