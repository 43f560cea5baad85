package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for row, want := range map[string]string{
		`{"env": {"GITHUB_TOKEN": "abcdef123"}}`:                                                                     "env GITHUB_TOKEN",
		`{"env": {"githubToken": "abcdef123", "apikey": "abcdef"}}`:                                                  "env apikey, env githubToken",
		`{"env": {"X": "ghp_abc", "Y": "sk-abc", "Z": "xoxb-1"}}`:                                                    "env X, env Y, env Z",
		`{"env": {"GITHUB_TOKEN": "${T}", "B_TOKEN": "!pass b", "C_TOKEN": "MY_C"}}`:                                 "",
		`{"env": {"D_TOKEN": "$(op read d)", "KEYBOARD": "german", "MONKEY": "banana"}}`:                             "",
		`{"env": {"TOKEN_FILE": "abcdefgh", "KEY": "/run/key", "TOKEN": "", "AUTH": "true", "MAX_TOKEN": "100000"}}`: "",
		`{"headers": {"Authorization": "Bearer abc", "Accept": "a/b"}}`:                                              "header Authorization",
		`{"headers": {"Authorization": "Bearer ${T}", "X-Api-Key": "abcdefgh"}}`:                                     "header X-Api-Key",
		`{"args": ["--token", "abcdefgh", "--api-key=abcdefgh", "--level", "high"]}`:                                 "args --api-key, args --token",
		`{"args": ["--token", "--verbose", "ghp_abcdef"]}`:                                                           "args 3",
		`{"args": ["postgres://me:abcdef@db/x"]}`:                                                                    "args 1",
		`{"url": "https://h/mcp?key=abcdefgh&page=2"}`:                                                               "url key",
		`{"url": "https://me:pw@h/mcp"}`:                                                                             "url password",
		`{"url": "https://${HOST}/mcp?key=abcdefgh"}`:                                                                "url key",
		`{"url": "https://me:pw@h/${PATH}"}`:                                                                         "url password",
		`{"url": "https://ghp_abcdef@h/mcp#token=abcdefgh"}`:                                                         "url token, url user",
		`{"args": ["-y", "mcp-remote", "--header", "Authorization: Bearer abc"]}`:                                    "args Authorization",
		`{"args": ["--header=X-Api-Key:abcdefgh", "--url=https://h/?key=abcdefgh"]}`:                                 "args --header=X-Api-Key, args 2",
		`{"args": ["--header", "Authorization: ${AUTH}", "C:\\key", "key: /run/key"]}`:                               "",
		`{"url": "https://me:${PW}@h/mcp?key=${KEY}"}`:                                                               "",
		`{"auth": {"client_secret": "abcdefgh", "client_id": "abcdefgh"}}`:                                           "auth client_secret",
		`{"oauth": {"clientSecret": "abcdefgh", "client_id": "ghp_abcdef"}}`:                                         "oauth clientSecret, oauth client_id",
		`{"auth": {"client_secret": "!op read x"}, "oauth": {"clientSecret": "${keychain:x}"}}`:                      "",
		`{"env": {"A_TOKEN": "${file:~/a}", "B_TOKEN": "${command:pass b}"}}`:                                        "",
		`no row`: "",
	} {
		if got := strings.Join(findPlaintextSecrets(json.RawMessage(row)), ", "); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	for row, want := range map[string]string{
		`{"command": "npx", "args": ["-y", "pkg", "a b", "${HOME}", ""]}`:                                                       `npx -y pkg "a b" ${HOME} ""`,
		`{"command": "x", "args": ["--token", "s3cret00", "--api-key=s3cret00"]}`:                                               `x --token … --api-key=…`,
		`{"command": "x", "args": ["postgres://me:s3cret@db/x", "ghp_s3cret"]}`:                                                 `x postgres://…@db/x …`,
		`{"url": "https://me:s3cret@h/mcp?key=s3cret00&page=2"}`:                                                                `https://…@h/mcp?key=…&page=2`,
		`{"url": "https://me:s3@cret@${HOST}/a@b?page=2&key=s3cret00#x"}`:                                                       `https://…@${HOST}/a@b?page=2&key=…#x`,
		`{"command": "npx", "args": ["mcp-remote", "https://h", "--header", "Authorization: Bearer s3cret"]}`:                   `npx mcp-remote https://h --header "Authorization: …"`,
		`{"command": "docker", "args": ["run", "--env=GITHUB_TOKEN=ghp_s3cret", "--env=API_KEY=s3cret00", "--env=LEVEL=high"]}`: `docker run --env=GITHUB_TOKEN=… --env=API_KEY=… --env=LEVEL=high`,
		`{"command": "x", "args": ["\u001b[31mred"]}`:                                                                           `x \u001b[31mred`,
		`{}`: "", ``: "",
	} {
		if got := redactedCommandLine(json.RawMessage(row)); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

// FuzzPlain: what is shown of a row has no secret in it that is pointed at, whatever the row is.
func FuzzPlain(f *testing.F) {
	f.Add("--token", "abcdefgh", "https://me:abcdefgh@h/mcp?key=abcdefgh")
	f.Add("x", "ghp_abcdefgh", "https://h/mcp?a=b&token=abcdefgh#x")
	f.Fuzz(func(t *testing.T, name, value, address string) {
		row, err := json.Marshal(map[string]any{"command": "x", "args": []string{name, value, address}, "url": address,
			"env": map[string]string{name: value}})
		if err != nil {
			t.Skip()
		}
		findPlaintextSecrets(row)
		redactedCommandLine(row)
		shown, hidden := redactURL(address)
		if len(hidden) == 0 && shown != address {
			t.Errorf("%q is shown as %q, and nothing is hidden", address, shown)
		}
		if _, again := redactURL(shown); len(hidden) > 0 && len(again) > 0 && strings.Contains(shown, "abcdefgh") {
			t.Errorf("%q is shown as %q, which has %q in it", address, shown, again)
		}
	})
}
