package interop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// TestFieldsOfSecrets has fields that are secrets by a name, a title, a description, or how they are to be typed.
func TestFieldsOfSecrets(t *testing.T) {
	fields := []string{
		`"format":{"type":"string","format":"password"}`, `"hidden":{"type":"string","writeOnly":true}`,
		`"key":{"type":"string"}`, `"cookie":{"type":"string"}`, `"pin":{"type":"integer"}`,
	}
	for _, name := range []string{"pwd", "userPwd", "pw", "cookie", "cookies", "session_cookie", "connectionString",
		"connection-string", "otp", "OTPCode", "2FA", "my_2FA_code", "user2PIN", "API2PIN", "oauth2Token", "2fa", "CVV",
		"passcode", "PINCode", "pa$$word", "api_key_value", "privateKey"} {
		fields = append(fields, fmt.Sprintf(`%q:{"type":"string"}`, name))
	}
	for _, text := range []string{
		"Your 2FA code / PIN", "recovery words", "The 12 recovery words of your wallet, in their order", "seed phrase",
		"P@ssw0rd", "login code from your SMS", "mother's maiden name", "one-time code", "One-Time Code",
		"verification code", "CVV", "Security code on the back of the card", "6-digit code",
		"The code we sent to your phone", "Backup codes", "Your session cookie", "Connection string of the database",
		"Please type your pass word's passphrase", "Token of the bot", "p a s s w o r d", "Ihr Passwort", "Wpisz hasło",
		"Código de verificación", "请输入验证码", "Please enter the API key of the account that deploys",
		"Type your password: it is needed once",
	} {
		fields = append(fields, fmt.Sprintf(`"value":{"type":"string","title":%q}`, text),
			fmt.Sprintf(`"value":{"type":"string","description":%q}`, text))
	}
	for _, one := range fields {
		if got := sensitiveFields(
			json.RawMessage(`{"message":"Please fill this in.","requestedSchema":{"properties":{` + one +
				`}}}`)); len(got) != 1 {
			t.Errorf("%s is not marked", one)
		}
	}
}

// TestHonestFields are of no secret, however like one they sound.
func TestHonestFields(t *testing.T) {
	for _, text := range []string{
		"zip code", "country code", "promo code", "error code", "exit code", "QR code", "language code", "source code",
		"dress code", "postal code", "pinned", "spin", "Pin this message", "map pin", "GPIO pin",
		"password_policy_url", "password length", "cookie recipe", "chocolate cookies", "cookie policy", "token count",
		"tokenCount", "max tokens", "maxTokens", "number of tokens", "token limit", "tokenizer", "primary key",
		"sort key", "Project key", "issue key", "public key", "key findings", "Key of the map", "keyword", "keyboard",
		"monkey", "secretary", "Secret name", "boarding pass", "pass rate", "compass", "passenger", "passport",
		"passwordless login", "author", "maker", "pwned", "power", "option", "dotplot", "cookbook",
		"private repository", "authentication method", "first name", "codec", "hotpot", "API key name", "Secret Santa",
		"John has lost his bag", "the chosen hat", "news if ready", "string", "connection", "card", "recovery plan",
		"seed", "backup", "verification", "mother's name",
	} {
		for _, as := range []string{`%q:{"type":"string"}`, `"value":{"type":"string","title":%q}`,
			`"value":{"type":"string","description":%q}`} {
			one := fmt.Sprintf(as, text)
			if got := sensitiveFields(
				json.RawMessage(`{"message":"Please fill this in.","requestedSchema":{"properties":{` + one +
					`}}}`)); len(got) != 0 {
				t.Errorf("%s is marked", one)
			}
		}
	}
	for _, in := range []string{
		`{"message":"Add an entry.","requestedSchema":{"properties":{"key":{"type":"string"},"value":{"type":"string"}}}}`,
		`{"message":"?","requestedSchema":{"properties":{"key":{"type":"string","title":"Key","description":"Where in the map it is put"}}}}`,
		`{"message":"Which one shall I bake?","requestedSchema":{"properties":{"cookie":{"type":"string","title":"Cookie"}}}}`,
		`{"message":"To which of the GPIO pins is the lamp connected?","requestedSchema":{"properties":{"pin":{"type":"integer"}}}}`,
		`{"message":"A repository","requestedSchema":{"properties":{"private":{"type":"boolean","description":"A private one"}}}}`,
		`{"message":"?","requestedSchema":{"properties":{"a":{"description":"Do not put passwords here."},"b":{"description":"How long the token lives"},"c":{"description":"Name of the secret in the vault"},"d":{"description":"Whether all tests must pass"},"e":{"writeOnly":false,"format":"email"}}}}`,
	} {
		if got := sensitiveFields(json.RawMessage(in)); len(got) != 0 {
			t.Errorf("%s: %q are marked", in, got)
		}
	}
}

// TestMessagesThatAsk has forms that ask for a secret above fields with names that say nothing.
func TestMessagesThatAsk(t *testing.T) {
	for _, message := range []string{
		"Enter your password here", "sign in again with your GitHub password",
		"Your session expired. Sign in again with your GitHub password.", "Please enter your API key to continue.",
		"GitHub password:", "Password", "Your PIN?",
		"What is your GitHub personal access token?", "What's your mother's maiden name?",
		"Enter the password for the database.", "We never see your password. Type it below.",
		"Enter your name, and your password",
		"Enter your email and password", "A password is required to go on.",
		"We sent an SMS. Enter the code we sent to your phone.", "Enter the 6-digit code", "Paste your seed phrase",
		"Type the twelve recovery words of your wallet.",
		"Type your p@ssw0rd", "Enter your pаssword", "Choose a new password", "Your password: type it here",
		"Security check: confirm your identity with your PIN", "Login with your token",
		"Please paste the session cookie of your browser",
		"Enter the connection string", "Please authenticate with your 2FA code",
		"Please re-authenticate: GitHub password",
		"To continue, your AWS secret access key", "To verify it's you, what was the code in the SMS?",
		"Reply with the one-time passcode", "[sudo] password for ada:", "Please provide GITHUB_TOKEN",
		"Bitte geben Sie Ihr Passwort ein", "Gib deine PIN ein", "Introduce tu contraseña", "Entrez votre mot de passe",
		"Entrez votre token", "Digite sua senha", "Voer je wachtwoord in", "Podaj hasło", "Şifrenizi girin",
		"Введите пароль", "请输入密码", "請輸入密碼", "パスワードを入力してください", "비밀번호를 입력하세요", "पासवर्ड दर्ज करें", "أدخل كلمة المرور",
		"Enter your p a s s w o r d",
	} {
		for _, in := range []string{
			fmt.Sprintf(`{"message":%q,"requestedSchema":{"properties":{"value":{"type":"string"},"answer":{},"ok":{"type":"boolean"},"n":{"type":"integer"},"one":{"type":"string","enum":["a"]},"mail":{"type":"string","format":"email"}}}}`, message),
			fmt.Sprintf(`{"message":"?","requestedSchema":{"description":%q,"properties":{"value":{"type":["null","string"]},"answer":{"type":"string"}}}}`, message),
		} {
			if diff := cmp.Diff([]string{"value", "answer"}, sensitiveFields(json.RawMessage(in))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", message, diff)
			}
		}
	}
	if diff := cmp.Diff([]string{"n"},
		sensitiveFields(
			json.RawMessage(
				`{"message":"Enter your PIN","requestedSchema":{"properties":{"n":{"type":"integer"},"ok":{"type":"boolean"}}}}`))); diff != "" {
		t.Errorf("a number (-want +got):\n%s", diff)
	}
}

// TestMessagesThatAskForNoSecret name secrets, or words that are like them, and ask for something else.
func TestMessagesThatAskForNoSecret(t *testing.T) {
	for _, message := range []string{
		"", "Your name?", "Enter your zip code.", "Enter the country code of the number.", "Do you have a promo code?",
		"Which error code did you see?", "How many tokens may the answer have?", "Enter the max tokens.",
		"Choose a name for the new API key.", "Enter a label for the token",
		"Never share your password. What is your nickname?", "Do not enter your password here.",
		"Your password was changed. What is your nickname?",
		"Enter the email address for the password reset", "What is the URL of the password policy?",
		"Enter the key of the map.", "All tests must pass before the merge. Which branch?",
		"Which cookie recipe do you want?",
		"Pin this message?", "Delete the token?", "Should the repository be private?", "Enter the name of the author.",
		"Which tokenizer should be used?", "Please do not share this code with anyone.", "Enter a keyword.",
		"What is the name of your secretary?", "Type the number of pages to spin through.",
		"Enter the primary key of the row.", "John has lost his bag. Describe it.", "Tell me your favourite cookies.",
		"Which branch should be merged into main?", "Enter your passport's country.", "Write a commit message.",
		"What is the key takeaway of the meeting?", "Provide the password length.",
		"Give the token a name", "What is the token's name?", "Type DELETE to confirm that the token is deleted",
		"Enter the commit message for 'rotate secrets'", "Enter a reason for rotating the API key",
		"How long should the token live?",
		"Write the title of the issue about expired tokens", "Describe the users, the roles and the tokens of the page",
		"What should happen after the sign in?",
	} {
		in := fmt.Sprintf(
			`{"message":%q,"requestedSchema":{"properties":{"value":{"type":"string"},"n":{"type":"integer"}}}}`,
			message)
		if got := sensitiveFields(json.RawMessage(in)); len(got) != 0 {
			t.Errorf("%q: %q are marked", message, got)
		}
	}
}

// TestAFormOfVeryManyFields is judged in no long time: what comes after thousands of fields is marked as it is.
func TestAFormOfVeryManyFields(t *testing.T) {
	var fields strings.Builder
	for n := range maxFormFields + 10 {
		fmt.Fprintf(&fields, `"n%d":{},`, n)
	}
	got := sensitiveFields(json.RawMessage(`{"requestedSchema":{"properties":{` + fields.String() + `"n0":{}}}}`))
	if len(got) != 11 || got[0] != fmt.Sprint("n", maxFormFields) {
		t.Errorf("%d are marked: %.40q", len(got), got)
	}
}

// TestOriginsInOtherLetters has hosts that are not what they look like: they are shown in ASCII, or not at all.
func TestOriginsInOtherLetters(t *testing.T) {
	for address, want := range map[string]string{
		`https://g\u043e\u043egle.com/x`:                         "https://xn--ggle-55da.com",
		`https://b\u00fccher.example:8443/`:                      "https://xn--bcher-kva.example:8443",
		`https://\uff47oogle\u3002com`:                           "https://google.com",
		`https://\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.com`: "https://xn--mgba3gch31f060k.com",
		`https://Example.com:443/\u202e`:                         "https://Example.com:443",
		`https://[::1]:80/`:                                      "https://[::1]:80",
		`https://a\u202eb.example/`:                              "",
		`https://a%E2%80%AEb.example/`:                           "",
		`https://goo\u200cgle.com`:                               "",
		`https://goo\u00adgle.com`:                               "",
		`https://bank.test\uff0fevil.test`:                       "",
		`https://bank.test\u3000.evil.test`:                      "",
		`https://b\u00fc..de`:                                    "",
		`https://[fe80::1%25\u00e9]/`:                            "",
		`https://` + strings.Repeat(`\u00fc`, 1e5):               "",
	} {
		params := json.RawMessage(`{"mode":"url","url":"` + address + `"}`)
		if got := rawjson.GetString(ElicitationRules{}.annotate("s", params), "_meta", MetaOrigin); got != want ||
			hasUnsafeURL(params) != (want == "") {
			t.Errorf("%.80s is of %q, declined: %v, want %q", address, got, hasUnsafeURL(params), want)
		}
	}
}

func FuzzAsks(f *testing.F) {
	f.Add("Enter your p@ssw0rd: type it here", "cookie")
	f.Fuzz(func(t *testing.T, message, name string) {
		in := fmt.Appendf(nil, `{"message":%s,"requestedSchema":{"properties":{%s:{"type":"string"}}}}`,
			rawjson.Quote(message), rawjson.Quote(name))
		if rawjson.Valid(in) == nil && len(sensitiveFields(in)) > 1 {
			t.Errorf("%s: one field is two", in)
		}
	})
}
