package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// testDevice is row OA-19 from the client's side: a person signs in on another device.
func testDevice(t *testing.T) {
	for name, tt := range map[string]struct {
		o      oauthtest.Options
		change func(*Server)
	}{
		"a client that registers": {oauthtest.Options{}, nil},
		"one that gets a secret":  {registration(oauthtest.Registration{Secret: true}), nil},
		"one that must prove it so": {registration(oauthtest.Registration{Methods: []string{"client_secret_basic"}}),
			nil},
		"a known one with a secret": {
			oauthtest.Options{Clients: []oauthtest.Client{{ID: "known", Secret: "known secret",
				Method: "client_secret_post"}},
				Knobs: oauthtest.Knobs{Registration: oauthtest.Registration{Methods: []string{"client_secret_post"}}}},
			func(s *Server) { s.ClientID, s.ClientSecret = "known", drawbridge.NewSecret("known secret") },
		},
		"without a complete address": {oauthtest.Options{Knobs: oauthtest.Knobs{Device: oauthtest.Device{NoComplete: true}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := meet(t, tt.o, tt.change)
			f, err := y.c.BeginDevice(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			address, code, issuer := f.SignInAddress()
			if address != y.p.URL(oauthtest.DevicePage) || len(code) != 9 || issuer != y.p.Issuer {
				t.Errorf("%s, %s, %s", address, code, issuer)
			}
			if !y.p.Approve(code) {
				t.Fatal("no such code")
			}
			if err := f.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			y.p.ExpireAccess()
			y.in()
		})
	}
}

// TestDeviceRegistersOnce has a person begin again and again.
func TestDeviceRegistersOnce(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	for range 3 {
		if _, err := y.c.BeginDevice(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := y.p.Registrations(); n != 1 {
		t.Errorf("%d registrations", n)
	}
}

// testNoDevice has servers that offer no such thing, or something that is not to be shown.
func testNoDevice(t *testing.T) {
	y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Device: oauthtest.Device{Absent: true}}}, nil)
	_, err := y.c.BeginDevice(t.Context())
	wants(t, err, "the authorization server does not offer sign-in by device")
	for body, says := range map[string]string{
		`{"device_code":"d","user_code":"u","verification_uri":"javascript:alert(1)"}`: "not a valid URL",
		`{"device_code":"d","user_code":"u","verification_uri":"http://x.example/"}`:   "https",
		`{"device_code":"d","user_code":"u"}`:                                          "not a valid URL",
		`{"verification_uri":"https://x.example/"}`:                                    "no code",
		`{`: "no code",
	} {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Faults: map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.DeviceStart: {Status: 200, Type: "application/json", Body: body}}}}, nil)
		_, err := y.c.BeginDevice(t.Context())
		wants(t, err, "begin a sign-in by device: ")
		wants(t, err, says)
	}
}

// A script answers the token endpoint, and the one for devices, from a list; behind its end somebody has said yes.
type script struct {
	answers []string
	asked   []time.Duration
	began   time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	respond := func(status int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
			Body: bodyOf(body), Request: r}, nil
	}
	if strings.HasSuffix(r.URL.Path, "/device") {
		return respond(200,
			`{"device_code":"d","user_code":"u","verification_uri":"https://as.example/","interval":2,"expires_in":600}`)
	}
	s.asked = append(s.asked, time.Since(s.began))
	n := len(s.asked) - 1
	switch {
	case n >= len(s.answers):
		return respond(200, `{"access_token":"a","token_type":"Bearer"}`)
	case s.answers[n] == "cut":
		return nil, context.DeadlineExceeded
	case s.answers[n] == "503":
		return respond(503, "")
	}
	body, _ := json.Marshal(map[string]string{"error": s.answers[n]})
	return respond(400, string(body))
}

// testDevicePace has the server say when to ask again, as a clock that stands still shows.
func testDevicePace(t *testing.T) {
	const sec = time.Second
	for _, tt := range []struct {
		name    string
		answers []string
		asked   []time.Duration
		says    string
	}{
		{"at once", nil, []time.Duration{2 * sec}, ""},
		{"pending", []string{"authorization_pending", "authorization_pending"}, []time.Duration{2 * sec,
			4 * sec, 6 * sec}, ""},
		{"slow down", []string{"slow_down", "authorization_pending", "slow_down"}, []time.Duration{2 * sec, 9 * sec,
			16 * sec, 28 * sec}, ""},
		{"denied", []string{"authorization_pending", "access_denied"}, []time.Duration{2 * sec, 4 * sec},
			"access_denied"},
		{"expired", []string{"expired_token"}, []time.Duration{2 * sec},
			"OAuth authorization code is invalid or expired. Please try again."},
		{"away for a moment", []string{"503", "cut"}, []time.Duration{2 * sec, 6 * sec, 14 * sec}, ""},
		{"nonsense", []string{"what"}, []time.Duration{2 * sec}, "what"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: tt.answers, began: time.Now()}
				c := scripted(t, s)
				f, err := c.BeginDevice(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				err = f.Wait(t.Context())
				if tt.says != "" {
					wants(t, err, tt.says)
				} else if err != nil || !c.signed() {
					t.Errorf("%v", err)
				}
				if len(s.asked) != len(tt.asked) {
					t.Fatalf("asked after %v; want %v", s.asked, tt.asked)
				}
				for i := range tt.asked {
					if s.asked[i] != tt.asked[i] {
						t.Errorf("asked after %v; want %v", s.asked, tt.asked)
					}
				}
			})
		})
	}
}

// TestDeviceLeft has nobody come until the code's time is over, and the caller leave before.
func TestDeviceLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending := make([]string, 1000)
		for i := range pending {
			pending[i] = "authorization_pending"
		}
		c := scripted(t, &script{answers: pending, began: time.Now()})
		f, err := c.BeginDevice(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = f.Wait(t.Context())
		if wants(t, err, "OAuth flow timed out. Please try again."); time.Since(began) != 10*time.Minute {
			t.Errorf("after %v", time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if f, err = c.BeginDevice(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// scripted is a credential whose row says all, and whose server is a script.
func scripted(t *testing.T, s *script) *Credential {
	t.Helper()
	desk := NewManager(ManagerOptions{Client: &http.Client{Transport: s}})
	t.Cleanup(desk.Close)
	return desk.Credential(Server{
		ID: "scripted", ClientID: "x", TokenURL: "https://as.example/token", DeviceURL: "https://as.example/device",
	}, nil)
}
