package admin_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
)

const page = "https://issuer.example/authorize?state=s"

// A gate is a server that requires a sign-in, with the person who does or does not sign in there.
type gate struct {
	state   drawbridge.CredentialStatus
	unbegun error            // why no sign-in can be begun
	mounts  error            // what comes of mounting it
	waits   error            // what comes of waiting; nil waits for ever
	pastes  map[string]error // what comes of each address
	spent   bool             // an address that is wrong ends the sign-in
	since   time.Time        // when it was made
	other   time.Duration    // after which another process signs in; 0 is never
	out     error
	why     error

	asks     []drawbridge.SignInEndpoints // the pairs that must be accepted, one after the other
	accepted []drawbridge.SignInEndpoints

	begun int
	limit time.Duration // how long the person was given
}

func (g *gate) ServerSignIn(drawbridge.ServerID) (drawbridge.SignInManager, error) { return g, nil }
func (g *gate) Mount(context.Context, drawbridge.ServerID) (drawbridge.Listing, error) {
	return drawbridge.Listing{}, g.mounts
}

func (g *gate) BeginSignIn(ctx context.Context, _ bool) (drawbridge.PendingSignIn, error) {
	g.begun++
	if until, ok := ctx.Deadline(); ok {
		g.limit = time.Until(until).Round(time.Second)
	}
	if len(g.accepted) < len(g.asks) {
		return nil, &drawbridge.EndpointsNotAcceptedError{Server: "github", Endpoints: g.asks[len(g.accepted)]}
	}
	if errors.Is(g.unbegun, context.DeadlineExceeded) {
		<-ctx.Done()
	}
	return g, g.unbegun
}

func (g *gate) SignInAddress() (url, code, issuer string) { return page, "", "https://issuer.example" }

func (g *gate) Elsewhere() string { return "" }

func (g *gate) AcceptEndpoints(_ context.Context, e drawbridge.SignInEndpoints) error {
	g.accepted = append(g.accepted, e)
	return nil
}

func (g *gate) Wait(ctx context.Context) error {
	if g.waits != nil {
		return g.waits
	}
	<-ctx.Done()
	return ctx.Err()
}

func (g *gate) CompleteWithURL(_ context.Context, text string) error {
	err := g.pastes[text]
	if g.spent {
		g.state.URL = ""
	}
	return err
}

func (g *gate) Status() (drawbridge.CredentialStatus, error) {
	s := g.state
	s.SignedIn = s.SignedIn || g.other > 0 && time.Since(g.since) >= g.other
	return s, nil
}

func (g *gate) SignOut(context.Context) (why, err error) { return g.why, g.out }

// A guide answers with its lines, and then waits, or is gone.
type guide struct {
	lines []string
	gone  bool
	led   []admin.SignInPrompt
	wrong []string

	yes, absent bool // what they say about endpoints
	asked       []drawbridge.SignInEndpoints
}

func (u *guide) ShowSignInURL(p admin.SignInPrompt) { u.led = append(u.led, p) }

func (u *guide) ConfirmEndpoints(_ context.Context, asked *drawbridge.EndpointsNotAcceptedError) (bool, error) {
	u.asked = append(u.asked, asked.Endpoints)
	if u.absent {
		return false, asked
	}
	return u.yes, nil
}

func (u *guide) AskRedirectURL(ctx context.Context, wrong error) (string, error) {
	if wrong != nil {
		u.wrong = append(u.wrong, wrong.Error())
	}
	if len(u.lines) > 0 {
		line := u.lines[0]
		u.lines = u.lines[1:]
		return line, nil
	}
	if u.gone {
		return "", io.EOF
	}
	<-ctx.Done()
	return "", ctx.Err()
}

func TestSignIn(t *testing.T) {
	unauthorized := &drawbridge.Fault{Code: drawbridge.AuthFailure, Step: "mount", Err: errors.New("sign-in needed")}
	away := errors.New("connection refused")
	mismatch := errors.New("State mismatch - possible CSRF attack")
	type want struct {
		Outcome admin.SignInOutcome
		Err     string
		Begun   int
		Wrong   []string
		// Asked are the pairs of origins that the person was asked about, Accepted those that count now.
		Asked, Accepted []drawbridge.SignInEndpoints
	}
	one := drawbridge.SignInEndpoints{Page: "https://a", Token: "https://t"}
	two := drawbridge.SignInEndpoints{Page: "https://b", Token: "https://t"}
	both, three := []drawbridge.SignInEndpoints{one, two}, []drawbridge.SignInEndpoints{one, two, one}
	asked := (&drawbridge.EndpointsNotAcceptedError{Server: "github", Endpoints: one}).Error()
	for name, tt := range map[string]struct {
		gate  gate
		guide guide
		visit admin.SignInRequest
		want  want
	}{
		"signed in already": {gate: gate{state: drawbridge.CredentialStatus{SignedIn: true}},
			want: want{Outcome: admin.AlreadySignedIn}},
		"signed in, and refused": {gate: gate{state: drawbridge.CredentialStatus{SignedIn: true},
			mounts: unauthorized, pastes: map[string]error{}}, guide: guide{lines: []string{"x"}},
			want: want{Outcome: admin.SignedIn, Begun: 1}},
		"signed in, server away": {gate: gate{state: drawbridge.CredentialStatus{SignedIn: true}, mounts: away},
			want: want{Outcome: admin.AlreadySignedIn}},
		"signed in, again": {gate: gate{state: drawbridge.CredentialStatus{SignedIn: true}},
			visit: admin.SignInRequest{Reauthenticate: true}, guide: guide{lines: []string{"x"}},
			want: want{Outcome: admin.SignedIn, Begun: 1}},
		"an address from before": {visit: admin.SignInRequest{RedirectURL: "x"},
			want: want{Outcome: admin.SignedIn}},
		"a wrong one from before": {gate: gate{pastes: map[string]error{"x": mismatch}},
			visit: admin.SignInRequest{RedirectURL: "x"}, want: want{Err: mismatch.Error()}},
		"nobody has to": {gate: gate{unbegun: errors.New("no metadata")},
			want: want{Outcome: admin.SignInNotNeeded, Begun: 1}},
		"signed in, and no other way": {gate: gate{state: drawbridge.CredentialStatus{SignedIn: true},
			unbegun: errors.New("no sign-in by device")}, visit: admin.SignInRequest{Reauthenticate: true},
			want: want{Err: `OAuth flow failed for "n": no sign-in by device`, Begun: 1}},
		"not reached": {gate: gate{unbegun: away, mounts: away},
			want: want{Err: `Failed to connect to "n": connection refused`, Begun: 1}},
		"no way in": {gate: gate{unbegun: errors.New("OAuth endpoints could not be discovered"),
			mounts: unauthorized},
			want: want{Err: `Authentication required for "n", but OAuth endpoints could not be discovered. Name them in the row's "auth", or give the server what it wants in "headers".`, Begun: 1}},
		"no way in again": {gate: gate{unbegun: errors.New("OAuth endpoints could not be discovered"),
			mounts: unauthorized}, visit: admin.SignInRequest{Reauthenticate: true},
			want: want{Err: `Could not discover OAuth endpoints from server response. Name them in the row's "auth".`,
				Begun: 1}},
		"a way that is broken": {gate: gate{unbegun: errors.New("OAuth authentication failed: no PKCE"),
			mounts: unauthorized}, want: want{Err: `OAuth flow failed for "n": no PKCE`, Begun: 1}},
		"two origins, and a yes": {gate: gate{asks: both[:1], pastes: map[string]error{}},
			guide: guide{yes: true, lines: []string{"x"}},
			want:  want{Outcome: admin.SignedIn, Begun: 2, Asked: both[:1], Accepted: both[:1]}},
		"a yes to each": {gate: gate{asks: both, pastes: map[string]error{}}, guide: guide{yes: true, lines: []string{"x"}},
			want: want{Outcome: admin.SignedIn, Begun: 3, Asked: both, Accepted: both}},
		"no end of them": {gate: gate{asks: three}, guide: guide{yes: true},
			want: want{Err: asked, Begun: 3, Asked: both, Accepted: both}},
		"two origins, and a no": {gate: gate{asks: both}, want: want{Err: "Sign-in cancelled.", Begun: 1, Asked: both[:1]}},
		"two origins, and nobody": {gate: gate{asks: both}, guide: guide{absent: true},
			want: want{Err: asked, Begun: 1, Asked: both[:1]}},
		"two origins, accepted before": {gate: gate{asks: both[:1], pastes: map[string]error{}},
			guide: guide{absent: true, lines: []string{"x"}}, visit: admin.SignInRequest{AcceptedEndpoints: one},
			want: want{Outcome: admin.SignedIn, Begun: 2, Accepted: both[:1]}},
		"two others accepted before": {gate: gate{asks: both[:1]}, guide: guide{absent: true},
			visit: admin.SignInRequest{AcceptedEndpoints: two}, want: want{Err: asked, Begun: 1, Asked: both[:1]}},
		"denied": {gate: gate{waits: errors.New("Authorization failed: access_denied")},
			want: want{Err: "Authorization failed: access_denied", Begun: 1}},
		"another process signed in": {gate: gate{other: 90 * time.Second},
			want: want{Outcome: admin.SignedIn, Begun: 1}},
		"the person went away": {guide: guide{gone: true}, want: want{Err: "Sign-in cancelled.", Begun: 1}},
		"wrong, nothing, right": {
			gate:  gate{state: drawbridge.CredentialStatus{URL: page}, pastes: map[string]error{"x": mismatch}},
			guide: guide{lines: []string{"x", " ", "y"}},
			want:  want{Outcome: admin.SignedIn, Begun: 1, Wrong: []string{mismatch.Error()}},
		},
		"wrong, and spent": {
			gate: gate{state: drawbridge.CredentialStatus{URL: page},
				pastes: map[string]error{"x": away}, spent: true},
			guide: guide{lines: []string{"x", "y"}},
			want:  want{Err: away.Error(), Begun: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.gate.since = time.Now()
				tt.visit.Server = "n"
				outcome, err := admin.New(admin.Options{}).SignIn(t.Context(), &tt.gate, tt.visit, &tt.guide)
				got := want{Outcome: outcome, Begun: tt.gate.begun, Wrong: tt.guide.wrong,
					Asked: tt.guide.asked, Accepted: tt.gate.accepted}
				if err != nil {
					got.Outcome, got.Err = "", err.Error()
				}
				wantDiff(t, "sign-in", tt.want, got)
				if led := len(tt.guide.led); led > tt.want.Begun {
					t.Errorf("the person was led %d times", led)
				}
			})
		})
	}
}

// TestSignInEnds returns a person five minutes, or as long as they say; Ctrl-C ends it before.
func TestSignInEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{0, 10 * time.Minute} {
			g := &gate{}
			start := time.Now()
			_, err := admin.New(admin.Options{}).SignIn(t.Context(), g, admin.SignInRequest{Server: "n",
				Timeout: limit}, &guide{})
			want := max(limit, 5*time.Minute)
			if err == nil || time.Since(start) != want || g.limit != want {
				t.Errorf("%v after %v, begun with %v", err, time.Since(start), g.limit)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := admin.New(admin.Options{}).SignIn(ctx, &gate{}, admin.SignInRequest{Server: "n"}, &guide{})
		if !errors.Is(err, admin.ErrSignInCancelled) {
			t.Error(err)
		}
		_, err = admin.New(admin.Options{}).SignIn(t.Context(), &gate{unbegun: context.DeadlineExceeded},
			admin.SignInRequest{Server: "n", Timeout: time.Nanosecond}, &guide{})
		if err == nil || err.Error() != "OAuth flow timed out. Please try again." {
			t.Error(err)
		}
	})
}

func TestSignOut(t *testing.T) {
	w := newWorld(t, map[string]string{userFile: `{"servers": {"n": {"url": "https://h.example/mcp"}}}`})
	roll, err := w.ReadServers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		gate gate
		want admin.SignOutResult
		line string
	}{
		"all is gone": {gate{}, admin.SignOutResult{Server: "n", WasSignedIn: true, Revoked: true},
			`✓ Signed out of "n"`},
		"not revoked": {gate{why: errors.New("no way")}, admin.SignOutResult{Server: "n", WasSignedIn: true,
			Why: "no way"}, `✓ Signed out of "n"`},
		"nobody is there": {gate{out: gateway.ErrNotSignedIn}, admin.SignOutResult{Server: "n"},
			`You are not signed in at "n".`},
	} {
		got, err := w.SignOut(t.Context(), roll, "n", &tt.gate)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantDiff(t, name, tt.want, got)
		wantDiff(t, name, tt.line, got.String())
	}
	if _, err := w.SignOut(t.Context(), roll, "m", &gate{}); err == nil ||
		err.Error() != `Server "m" not found. Did you mean "n"?` {
		t.Error(err)
	}
	if got, err := w.SignOut(t.Context(), roll, "n", &gate{out: errors.New("the disk is full")}); err == nil ||
		got.WasSignedIn {
		t.Errorf("%+v, %v", got, err)
	}
}
