package bearer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestIntrospection has what an issuer may say of an opaque token.
func TestIntrospection(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	ada := "ada@" + i.URL
	const about = `"active":true,"sub":"ada","scope":"mcp","aud":"` + resource + `"`
	for _, tt := range []struct{ name, answer, want string }{
		{"right", `{` + about + `}`, ada},
		{"with all there is", fmt.Sprintf(`{%s,"iss":%q,"exp":%d,"token_type":"Bearer","username":"x"}`, about, i.URL,
			time.Now().Add(time.Hour).Unix()), ada},
		{"not active", `{"active":false}`, wrong + "the token is not active"},
		{"not said to be active", `{"sub":"ada","scope":"mcp","aud":"` + resource + `"}`, wrong +
			"the token is not active"},
		{"active as a text", strings.Replace(`{`+about+`}`, "true", `"true"`, 1),
			"transient: the issuer of the token cannot be reached"},
		{"active twice", `{"active":false,` + about + `}`, "transient: the issuer of the token cannot be reached"},
		{"an error with 200", `{"error":"invalid_client","error_description":"canary"}`, wrong +
			"the token is not active"},
		{"no JSON", `canary`, "transient: the issuer of the token cannot be reached"},
		{"expired", `{` + about + `,"exp":1}`, wrong + "the token has expired"},
		{"token for another resource", strings.Replace(`{`+about+`}`, "gate", "other", 1), wrong +
			"the token is for another resource"},
		{"missing aud", `{"active":true,"sub":"ada","scope":"mcp"}`, wrong + "the token is for another resource"},
		{"missing sub", strings.Replace(`{`+about+`}`, `"sub":"ada",`, ``, 1), wrong + "the token has no subject"},
		{"other issuer", `{` + about + `,"iss":"https://evil.example"}`, wrong + "the token is from another issuer"},
		{"bound to a key", `{` + about + `,"token_type":"DPoP"}`, wrong +
			"the token is bound to a key, and was sent as a bearer token"},
		{"no scope", `{"active":true,"sub":"ada","aud":"` + resource + `"}`,
			"policy_blocked: the token has none of the scopes accepted here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verifier(t, Options{Introspection: introspection(i)}, i)
			i.SetIntrospection("opaque-token", tt.answer)
			if got := outcome(t, v, "opaque-token"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			_, err := v.Authenticate(t.Context(), "opaque-token", resource)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error holds what was answered: %v", err)
			}
		})
	}
}

// TestOA10Revoked follows tokens that are taken back, narrowed, or cannot be asked after.
func TestOA10Revoked(t *testing.T) {
	i, now := mcptest.NewTokenIssuer(t, ""), newClock()
	v := verifier(t, Options{Introspection: introspection(i), Now: now.Now}, i)
	jwt := i.Token(i.Claims(resource, map[string]any{"exp": now.Now().Add(24 * time.Hour).Unix()}))
	const opaque, answer = "opaque-token", `{"active":true,"sub":"ada","scope":"mcp","aud":"` + resource + `"}`
	const inactive = wrong + "the token is not active"
	ada := "ada@" + i.URL
	for _, token := range []string{opaque, jwt} {
		asked := i.RequestCount(mcptest.IntrospectPath)
		expect := func(what, want string, more int) {
			t.Helper()
			if got := outcome(t, v, token); got != want {
				t.Errorf("%s: got %s, want %s", what, got, want)
			}
			if asked += more; i.RequestCount(mcptest.IntrospectPath) != asked {
				t.Errorf("%s: the issuer was asked %d times, want %d", what,
					i.RequestCount(mcptest.IntrospectPath), asked)
			}
		}
		expect("not active yet", inactive, 1)
		expect("asked just now", inactive, 0)
		now.pass(rejectedTTL)
		i.SetIntrospection(token, answer)
		expect("active", ada, 1)
		expect("remembered", ada, 0)
		i.SetIntrospection(token, "")
		expect("revoked, and remembered", ada, 0)
		now.pass(acceptedTTL)
		expect("revoked", inactive, 1)
		now.pass(rejectedTTL)
		i.SetIntrospection(token, strings.Replace(answer, `"scope":"mcp"`, `"scope":"mcp:docs"`, 1))
		if c, err := v.Authenticate(t.Context(), token, resource); err != nil || len(c.Scopes) != 1 ||
			c.Scopes[0] != "mcp:docs" {
			t.Errorf("after role change: %+v, %v", c, err)
		}
		asked++
		now.pass(acceptedTTL)
		i.SetIntrospection(token, strings.Replace(answer, `"scope":"mcp"`, `"scope":""`, 1))
		expect("without scopes", "policy_blocked: the token has none of the scopes accepted here", 1)
		now.pass(acceptedTTL)
		i.SetDown(true)
		expect("introspection down", "transient: the issuer of the token cannot be reached", 1)
		i.SetDown(false)
		i.SetIntrospection(token, answer)
		expect("up again", ada, 1)
	}
	i.SetIntrospection(jwt, strings.Replace(answer, "ada", "eve", 1))
	now.pass(acceptedTTL)
	if got := outcome(t, v, jwt); got != wrong+"the issuer names another subject than the token" {
		t.Error(got)
	}
	forged := spliced(jwt, i.Token(i.Claims(resource, nil)))
	asked := i.RequestCount(mcptest.IntrospectPath)
	if got := outcome(t, v, forged); got != wrong+"the token is signed with an unknown key" ||
		i.RequestCount(mcptest.IntrospectPath) != asked {
		t.Errorf("a forged token was asked after: %s", got)
	}
}

// TestRememberedUntilItExpires shows that no token outlives its own end in our memory.
func TestRememberedUntilItExpires(t *testing.T) {
	i, now := mcptest.NewTokenIssuer(t, ""), newClock()
	v := verifier(t, Options{Introspection: introspection(i), Now: now.Now, ClockSkew: time.Second}, i)
	i.SetIntrospection("t", fmt.Sprintf(`{"active":true,"sub":"ada","scope":"mcp","aud":%q,"exp":%d}`, resource,
		now.Now().Add(10*time.Second).Unix()))
	if got := outcome(t, v, "t"); got != "ada@"+i.URL {
		t.Fatal(got)
	}
	now.pass(12 * time.Second)
	if got := outcome(t, v, "t"); got != wrong+"the token has expired" || i.RequestCount(mcptest.IntrospectPath) != 2 {
		t.Errorf("%s, asked %d times", got, i.RequestCount(mcptest.IntrospectPath))
	}
}

// TestIntrospectionIsNotLed shows that our own secret goes to the endpoint that was configured, and nowhere else.
func TestIntrospectionIsNotLed(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	i.SetHandler(mcptest.IntrospectPath, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	v := verifier(t, Options{Introspection: introspection(i)}, i)
	if got := outcome(t, v, "opaque"); got != "transient: the issuer of the token cannot be reached" ||
		i.RequestCount("/elsewhere") > 0 {
		t.Errorf("%s, and it was followed %d times", got, i.RequestCount("/elsewhere"))
	}
}

// TestManyAtOnce has many tokens of many callers at once: so many are asked after at a time, and all are answered.
func TestManyAtOnce(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	var mu sync.Mutex
	at, most := 0, 0
	i.SetHandler(mcptest.IntrospectPath, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		at++
		most = max(most, at)
		mu.Unlock()
		_, _ = io.WriteString(w, `{"active":true,"sub":"ada","scope":"mcp","aud":"`+resource+`"}`)
		mu.Lock()
		at--
		mu.Unlock()
	})
	v := verifier(t, Options{Introspection: introspection(i)}, i)
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			if got := outcome(t, v, fmt.Sprint("token-", n)); got != "ada@"+i.URL {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if most > maxIntrospections {
		t.Errorf("%d were asked after at once", most)
	}
}

// TestNothingIsShown prints all that a verifier knows.
func TestNothingIsShown(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	v := verifier(t, Options{Introspection: introspection(i)}, i)
	const token = "canary-token-of-ada"
	i.SetIntrospection(token, `{"active":true,"sub":"ada","scope":"mcp","aud":"`+resource+`"}`)
	c, err := v.Authenticate(t.Context(), token, resource)
	if err != nil {
		t.Fatal(err)
	}
	i.SetDown(true)
	_, down := v.Authenticate(t.Context(), "canary-of-another", resource)
	for _, text := range []string{fmt.Sprintf("%+v %#v", v, v), fmt.Sprintf("%+v %#v", v.o, v.o), fmt.Sprintf("%+v %#v",
		c, c), fmt.Sprintf("%+v %v", down, down)} {
		if strings.Contains(text, "canary") || strings.Contains(text, i.Secret) {
			t.Errorf("it shows: %s", text)
		}
	}
}
