package oauth

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// TestMatrix is the matrix of what goes wrong with OAuth, row by row, from the client's side. What is a server's alone
// is tested in server/bearer: the consent page (OA-1, OA-15), the claims and keys of tokens (OA-9), whom a token is of
// (OA-10), and the identity of a client's headers (OA-17). Private addresses and redirects (OA-7) are in
// bridge/egress. That Authorization crosses no origin is tested in bridge/remote too, and what
// ends with a sign-in, and that 401 in the midst of a session is got over, in bridge.
func TestMatrix(t *testing.T) {
	type row map[string]func(*testing.T)
	for name, tests := range map[string]row{
		"OA-1 confused deputy": {"each issuer knows its own client": testClientOfEachIssuer},
		"OA-2 redirect URI":    {"the same to the byte": testRedirectURI, "of the row": testRedirectURIOfRow},
		"OA-3 state": {"missing, wrong, used": testState, "too late": testStateHasItsTime,
			"of the provider's": testStateOfProvider},
		"OA-4 PKCE": {"a proof for each": testProof, "codes refused": testCodeRefused},
		"OA-5 audience": {"another resource": testAudience,
			"the resource indicator": testResourceIndicator},
		"OA-6 mix-up": {"the issuer in the answer": testIssuerInAnswer, "two providers": testMixUp,
			"a slash more": testIssuerWithASlash, "no issuer in the answer": testMixUpWithoutIss,
			"two origins": testTwoOrigins, "changed in between": testEndpointsChangeInBetween,
			"another origin": testOtherOriginThanIssuer, "the row": testEndpointsOfRow,
			"token exchange": testExchangeAtTwoOrigins},
		"OA-7 metadata": {"refused": testMetadataRefused, "swapped": testMetadataSwapped,
			"pages": testPagesForMetadata},
		"OA-8 authorization address": {"schemes and shapes": testAuthorizationAddresses,
			"parameters of its own": testAuthorizationParameters},
		"OA-10 token binding": {"kept for another server": testKeptForAnother,
			"nothing left of before": testNothingLeftOfBefore},
		"OA-11 refresh": {
			"rotation": testRotation, "once for all calls": testRefreshOnceForAll, "in vain": testRefreshedInVain,
			"refused":         testRefreshRefused,
			"the answer lost": testRefreshAnswerLost, "the caller gone": testRefreshOutlivesItsCaller,
			"for ever":   testRefusedForEver,
			"expires_in": testExpiresIn, "clocks": testClocks,
		},
		"OA-12 storage": {"no secret leaves": testNoSecretLeaves},
		"OA-13 scopes":  {"step-up, downgrade, cap": testScopes},
		"OA-14 registration": {"dynamic": testRegistration, "by document": testClientDocument,
			"known before": testKnownClient},
		"OA-15 our own page": {"runs nothing": testCallbackPage, "before the end": testPageBeforeTheEnd},
		"OA-16 loopback callback": {"one door": testCallbackDoor, "squatting": testCallbackPort,
			"by hand": testPaste},
		"OA-17 headers":               {"bearer's tokens only": testOtherKindOfToken},
		"OA-18 the client for itself": {"client credentials": testItself},
		"OA-19 devices": {"the whole way": testDevice, "the pace": testDevicePace, "none": testNoDevice,
			"of another": testDeviceOfAnother},
		"OA-20 sign-out": {"revoked": testSignOut, "while somebody comes back": testSignOutElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, test)
			}
		})
	}
}

// testClientOfEachIssuer has a server change whom it trusts: the new one is told nothing that the old one knows.
func testClientOfEachIssuer(t *testing.T) {
	y := meet(t, registration(oauthtest.Registration{Secret: true}), nil)
	y.signIn()
	before := y.kept()
	second := oauthtest.New(t, oauthtest.Options{Resources: []string{y.p.ResourceURL}})
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.AuthorizationServers = []string{second.Issuer} })
	f := y.begin()
	if err := second.AllowSignIn(t.Context(), f.url); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := y.kept()
	if after.Client.ID == before.Client.ID || after.Refresh == before.Refresh ||
		after.AuthServer.Issuer != second.Issuer {
		t.Errorf("client %q, issuer %q", after.Client.ID, after.AuthServer.Issuer)
	}
	for _, r := range second.Requests() {
		all := r.Query.Encode() + r.Form.Encode() + r.Header.Get("Authorization") + string(r.Body)
		for _, secret := range []string{before.Client.ID, before.Client.Secret, before.Access, before.Refresh} {
			if strings.Contains(all, secret) {
				t.Errorf("the new issuer was told at %s what the old one knows", r.Path)
			}
		}
	}
}

// testMetadataSwapped has metadata change between a sign-in's two halves, and behind it: a code, and a refresh token,
// go where they are from.
func testMetadataSwapped(t *testing.T) {
	evil := newServer(t, nil)
	y := meet(t, oauthtest.Options{}, nil)
	f := y.begin()
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Discovery.Set = map[string]any{"token_endpoint": evil.URL +
			"/token"}
	})
	if err := y.p.AllowSignIn(t.Context(), f.url); err != nil {
		t.Fatal(err)
	}
	y.p.ExpireAccess()
	y.in()
	if c := y.p.Counts(); c.Codes != 1 || c.Refreshes != 1 {
		t.Errorf("%+v", c)
	}
}
