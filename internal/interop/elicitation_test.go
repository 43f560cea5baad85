package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

func TestWhoMayAskPeople(t *testing.T) {
	yes, no := true, false
	const sandboxed = `trust = "sandboxed" declines: trust = "untrusted" would allow it`
	const row = "elicitation_enabled = false declines: true in its row would allow it"
	const all = "elicitation_enabled = false in [mcp] declines: elicitation_enabled = true in its row would allow it"
	const session = "a session declines: elicitation_enabled = true in its row would allow it"
	for _, tt := range []struct {
		name  string
		rules ElicitationRules
		row   config.Server
		kind  drawbridge.CallerKind
		want  string
	}{
		{"an outside client", ElicitationRules{}, config.Server{}, drawbridge.External, ""},
		{"a session", ElicitationRules{}, config.Server{}, drawbridge.Agent, session},
		{"a session, by the row", ElicitationRules{}, config.Server{ElicitationEnabled: &yes}, drawbridge.Agent, ""},
		{"a session, by the setting", ElicitationRules{Enabled: &yes}, config.Server{}, drawbridge.Agent, ""},
		{"the row says no", ElicitationRules{Enabled: &yes}, config.Server{ElicitationEnabled: &no},
			drawbridge.External, row},
		{"the setting says no", ElicitationRules{Enabled: &no}, config.Server{}, drawbridge.External, all},
		{"the row counts before the setting", ElicitationRules{Enabled: &no}, config.Server{ElicitationEnabled: &yes},
			drawbridge.External, ""},
		{"a sandboxed one never", ElicitationRules{Enabled: &yes}, config.Server{Trust: "sandboxed",
			ElicitationEnabled: &yes}, drawbridge.External, sandboxed},
	} {
		if got := tt.rules.BlockReason(tt.row, drawbridge.Caller{Kind: tt.kind}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// asker is a peer that answers as it was taught.
type asker func(ctx context.Context) (json.RawMessage, error)

func (asker) Notify(context.Context, string, json.RawMessage) error { return nil }

func (a asker) Request(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	return a(ctx)
}

func TestDesk(t *testing.T) {
	refused := errors.New("refused")
	accepts := asker(func(context.Context) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept"}`),
			nil
	})
	silent := asker(func(ctx context.Context) (json.RawMessage, error) { <-ctx.Done(); return nil, ctx.Err() })
	for _, tt := range []struct {
		name, method, params string
		peer                 asker
		rules                ElicitationRules
		want                 string
		err                  error
		took                 time.Duration
	}{
		{"a form", mcp.MethodElicitation, `{"message":"?"}`, accepts, ElicitationRules{},
			`{"action":"accept"}`, nil, 0},
		{"the client's own refusal", mcp.MethodElicitation, `{}`, func(context.Context) (json.RawMessage,
			error) {
			return nil, refused
		}, ElicitationRules{}, "", refused, 0},
		{"no answer", mcp.MethodElicitation, `{}`, silent, ElicitationRules{}, `{"action":"cancel"}`, nil,
			defaultFormTimeout},
		{"no answer, by the setting", mcp.MethodElicitation, `{}`, silent,
			ElicitationRules{Timeout: time.Second}, `{"action":"cancel"}`, nil, time.Second},
		{"a page takes its time", mcp.MethodElicitation, `{"mode":"url","url":"https://a.test"}`, silent,
			ElicitationRules{}, "", context.DeadlineExceeded, time.Hour},
		{"another question does too", "sampling/createMessage", `{}`, silent, ElicitationRules{}, "",
			context.DeadlineExceeded, time.Hour},
		{"a file", mcp.MethodElicitation, `{"mode":"url","url":"file:///etc/passwd"}`, accepts, ElicitationRules{},
			`{"action":"decline"}`, nil, 0},
		{"a script", mcp.MethodElicitation, `{"mode":"url","url":"javascript:alert(1)"}`, accepts, ElicitationRules{},
			`{"action":"decline"}`, nil, 0},
		{"no address", mcp.MethodElicitation, `{"mode":"url","url":"https://"}`, accepts, ElicitationRules{},
			`{"action":"decline"}`, nil, 0},
		{"a script without its mode", mcp.MethodElicitation, `{"message":"?","url":"javascript:alert(1)"}`, accepts,
			ElicitationRules{}, `{"action":"decline"}`, nil, 0},
		{"a page and a script", mcp.MethodElicitation,
			`{"mode":"url","url":"javascript:alert(1)","url":"https://a.test"}`, accepts, ElicitationRules{},
			`{"action":"decline"}`, nil, 0},
		{"a form that some take for a page", mcp.MethodElicitation, `{"mode":"form","Mode":"url","message":"?"}`,
			accepts, ElicitationRules{}, `{"action":"decline"}`, nil, 0},
		{"two messages", mcp.MethodElicitation, `{"message":"fill in","message\u200b":"your password"}`, accepts,
			ElicitationRules{}, `{"action":"decline"}`, nil, 0},
		{"no room", mcp.MethodElicitation, `{}`, accepts, ElicitationRules{Capacity: -1},
			`{"action":"decline"}`, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var d ElicitationQueue
			began := time.Now()
			got, err := d.AskUser(ctx, tt.rules, "ada", tt.peer, tt.method, json.RawMessage(tt.params))
			if string(got) != tt.want || !errors.Is(err, tt.err) || time.Since(began) != tt.took {
				t.Errorf("%s: %s, %v after %v", tt.name, got, err, time.Since(began))
			}
			if len(d.open) > 0 {
				t.Errorf("%s: %v are open at the end", tt.name, d.open)
			}
		})
	}
}

// TestTenThousandFormsAreDeclined is HS-20: of so many questions at once 16 reach the person.
func TestTenThousandFormsAreDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d ElicitationQueue
		outcomes := make(chan string)
		ctx, cancel := context.WithCancel(t.Context())
		gone := asker(func(ctx context.Context) (json.RawMessage, error) { <-ctx.Done(); return nil, ctx.Err() })
		for range 10_000 {
			go func() {
				answer, _ := d.AskUser(ctx, ElicitationRules{}, "ada", gone, mcp.MethodElicitation, nil)
				outcomes <- string(answer)
			}()
		}
		for range 10_000 - defaultFormCapacity {
			if got := <-outcomes; got != `{"action":"decline"}` {
				t.Fatalf("got %s", got)
			}
		}
		bobs := asker(func(context.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept"}`),
				nil
		})
		if got, err := d.AskUser(ctx, ElicitationRules{}, "bob", bobs, mcp.MethodElicitation, nil); err != nil ||
			string(got) != `{"action":"accept"}` {
			t.Errorf("someone else: %s, %v", got, err)
		}
		cancel()
		for range defaultFormCapacity {
			if got := <-outcomes; got != "" {
				t.Errorf("got %s", got)
			}
		}
	})
}

func TestMarked(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing to mark",
			`{"message":"é \u0041","requestedSchema":{"properties":{"spinning":{"title":"T"}, "author":{}}},"x":1e2}`,
			`{"message":"é \u0041","requestedSchema":{"properties":{"spinning":{"title":"T"}, "author":{}}},"x":1e2}`},
		{"what cannot be seen",
			`{"message":"a\u202eb\u001b[31m\u200b","requestedSchema":{"properties":{"a\u202e":{"title":"t\u0000","description":"d\u0085","enum":["e\u202e"]}}}}`,
			`{"message":"ab[31m","requestedSchema":{"properties":{"a\u202e":{"title":"t","description":"d","enum":["e\u202e"]}}}}`},
		{"secrets", `{"requestedSchema":{"properties":{"userPin":{},"api-key":{},"n":{"title":"Your Password"},"OAuthToken":{},"monkey":{}}}}`,
			`{"requestedSchema":{"properties":{"userPin":{},"api-key":{},"n":{"title":"Your Password"},"OAuthToken":{},"monkey":{}}},"_meta":{"drawbridge/sensitive":["userPin","api-key","n","OAuthToken"]}}`},
		{"what cannot be seen among choices",
			`{"requestedSchema":{"properties":{"a":{"oneOf":[{"const":"x\u202e","title":"t\u202e"},1],"items":{"title":"i\u202e"},"enumNames":["n\u202e","m"]}}}}`,
			`{"requestedSchema":{"properties":{"a":{"oneOf":[{"const":"x\u202e","title":"t"},1],"items":{"title":"i"},"enumNames":["n","m"]}}}}`},
		{"a page", `{"mode":"url","url":"https://bank.test@evil.test:8443/x?y"}`,
			`{"mode":"url","url":"https://bank.test@evil.test:8443/x?y","_meta":{"drawbridge/origin":"https://evil.test:8443"}}`},
		{"no page of the web", `{"mode":"url","url":"file:///x"}`, `{"mode":"url","url":"file:///x"}`},
	} {
		if diff := cmp.Diff(tt.want, string(ElicitationRules{}.annotate("s", json.RawMessage(tt.in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestWhatSoundsSecret has names of fields in other words, languages and letters.
func TestWhatSoundsSecret(t *testing.T) {
	for _, name := range []string{
		"password", "pass\u200bword", "p\u0430ssw\u043erd", "ｐａｓｓｗｏｒｄ", "pässword", "passw0rd", "P4SSWORD", "pass word",
		"Your API key", "card_number", "Credit card", "CVV", "cvc", "ssn", "2fa", "totpCode",
		"seed phrase", "Passwort", "Kennwort", "contraseña", "mot de passe", "mot_de_passe", "Senha", "hasło", "Пароль",
		"密码", "パスワード", "비밀번호", "पासवर्ड", "p\u0131n", "user.pin",
	} {
		if !isSecretName(normalizeWords(name)) {
			t.Errorf("%q sounds like no secret", name)
		}
	}
	for _, name := range []string{"", "name", "author", "spinning", "monkey", "keyboard", "postcard", "passenger",
		"compass", "business card", "number", "opinion", "Straße", "имя", "名前", "passport"} {
		if isSecretName(normalizeWords(name)) {
			t.Errorf("%q sounds like a secret", name)
		}
	}
}

// TestRulesOfWhatIsShown has a look handed in, and the warning turned off. What a server says in our name does not
// stay.
func TestRulesOfWhatIsShown(t *testing.T) {
	look := func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage {
		return rawjson.Apply(params, rawjson.Put(rawjson.Quote(string(server)+" "+method), "looked"))
	}
	const in = `{"message":"a\u200b","requestedSchema":{"properties":{"pin":{}}},"_meta":{"drawbridge/sensitive":[],"drawbridge/flagged":[],"drawbridge/origin":"https://bank.test"}}`
	for _, tt := range []struct {
		name   string
		rules  ElicitationRules
		method string
		want   string
	}{
		{"no look", ElicitationRules{}, mcp.MethodElicitation,
			`{"message":"a","requestedSchema":{"properties":{"pin":{}}},"_meta":{"drawbridge/server":"s","drawbridge/sensitive":["pin"]}}`},
		{"a look, and no warning", ElicitationRules{Inspect: look, NoSensitiveMarks: true}, mcp.MethodElicitation,
			`{"message":"a\u200b","requestedSchema":{"properties":{"pin":{}}},"_meta":{"drawbridge/server":"s"},"looked":"s elicitation/create"}`},
		{"a sampling", ElicitationRules{Inspect: look}, mcp.MethodSampling,
			`{"message":"a\u200b","requestedSchema":{"properties":{"pin":{}}},"_meta":{},"looked":"s sampling/createMessage"}`},
		{"roots", ElicitationRules{Inspect: look}, mcp.MethodRootsList,
			`{"message":"a\u200b","requestedSchema":{"properties":{"pin":{}}},"_meta":{}}`},
	} {
		if diff := cmp.Diff(tt.want, string(tt.rules.PrepareRequest("s", tt.method, json.RawMessage(in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func FuzzMarked(f *testing.F) {
	f.Add(`{"message":"a\u202e","requestedSchema":{"properties":{"key":{}}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		if rawjson.Valid([]byte(in)) != nil || in == "" || in[0] != '{' {
			return
		}
		once := ElicitationRules{}.annotate("s", json.RawMessage(in))
		if rawjson.Valid(once) != nil || string(ElicitationRules{}.annotate("s", once)) != string(once) {
			t.Errorf("%q became %q", in, once)
		}
	})
}

// BenchmarkSensitive looks at a form of a thousand fields, all of which sound like secrets.
func BenchmarkSensitive(b *testing.B) {
	var fields []string
	for n := range 1000 {
		fields = append(fields, fmt.Sprintf(`"token %d":{"title":"A field"}`, n))
	}
	form := []byte(`{"requestedSchema":{"properties":{` + strings.Join(fields, ",") + `}}}`)
	for b.Loop() {
		if len(sensitiveFields(form)) != len(fields) {
			b.Fatal("not all fields were found")
		}
	}
}
