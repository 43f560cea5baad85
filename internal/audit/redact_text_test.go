package audit

import (
	"strings"
	"testing"
)

// TestTextsAreVeiled has texts in which every "SECRET" is to go, and what is to be left of them.
func TestTextsAreVeiled(t *testing.T) {
	for text, want := range map[string]string{
		`PGPASSWORD=SECRET psql -h db`:                        `PGPASSWORD=[redacted] psql -h db`,
		`SSHPASS=SECRET sshpass -e ssh host`:                  `SSHPASS=[redacted] sshpass -e ssh host`,
		`keytool -storepass SECRET -alias a`:                  `keytool -storepass [redacted] -alias a`,
		`export TOKEN='a with blanks SECRET' && run`:          `export TOKEN='[redacted]' && run`,
		`token="abc\"SECRET" n=1`:                             `token="[redacted]" n=1`,
		`token="abc\\" n=1`:                                   `token="[redacted]" n=1`,
		`--token "a b SECRET" --n 1`:                          `--token "[redacted]" --n 1`,
		"--token \\\n  SECRET --n 1":                          "--token \\\n  [redacted] --n 1",
		`TOKEN='it'\''s SECRET' run`:                          `TOKEN='[redacted]' run`,
		`TOKEN='it'"'"'s SECRET' run`:                         `TOKEN='[redacted]' run`,
		`IDENTIFIED BY x, password = 'it''s SECRET', a = 'b'`: `IDENTIFIED BY x, password = '[redacted]', a = 'b'`,
		`TOKEN='a b'SECRET run`:                               `TOKEN='[redacted] run`,
		`TOKEN=a\ SECRET run`:                                 `TOKEN=[redacted] run`,
		`TOKEN=$'a SECRET' run`:                               `TOKEN=$'[redacted]' run`,
		`password = rb"a SECRET" # x`:                         `password = rb"[redacted]" # x`,
		`password := "a SECRET" // x`:                         `password := "[redacted]" // x`,
		`os.environ["TOKEN"] = "a SECRET"; x()`:               `os.environ["TOKEN"] = "[redacted]"; x()`,
		`if password == "a SECRET" {`:                         `if password == "[redacted]" {`,
		`:password => "a SECRET", :n => 1`:                    `:password => "[redacted]", :n => 1`,
		"password = `a SECRET` + x":                           "password = `[redacted]` + x",
		`token = """a "b" SECRET""" + x`:                      `token = """[redacted]""" + x`,
		`"{""password"":""a SECRET"",""n"":1}"`:               `"{""password"":""[redacted]"",""n"":1}"`,
		`{"password": "a, b} SECRET", "n": 1}`:                `{"password": "[redacted]", "n": 1}`,
		`{\"password\": \"a \\\"b\\\" SECRET\", \"n\": 1}`:    `{\"password\": \"[redacted]\", \"n\": 1}`,
		`{"Authorization": "Bearer SECRET+/="}`:               `{"Authorization": "Bearer [redacted]"}`,
		`password="cut off SECRET`:                            `password="[redacted]`,
		// What is not a value.
		`read -p "Password: " answer; echo "done"`: `read -p "Password: " answer; echo "done"`,
		`["password:", "b c"]`:                     `["password:", "b c"]`,
		`password="" user="u"`:                     `password="" user="u"`,
		`{"token":"","n":1}`:                       `{"token":"","n":1}`,
		`-d 'token="SECRET"' https://x`:            `-d 'token="[redacted]"' https://x`,
		`-d "password=SECRET" https://x`:           `-d "password=[redacted]" https://x`,
		// Lines.
		"a: 1\npassword: |\n  SECRET\n\n  SECRET\nb: 2\n":        "a: 1\npassword: |\n  [redacted]\nb: 2\n",
		"- password: >-  \r\n    SECRET\r\n  user: u":            "- password: >-  \r\n    [redacted]\r\n  user: u",
		`{"y":"a: 1\n  password: |2+\n    SECRET\n  user: u\n"}`: `{"y":"a: 1\n  password: |2+\n    [redacted]\n  user: u\n"}`,
		"\"password\":\n  SECRET and more\nb: 2":                 "\"password\":\n  [redacted]\nb: 2",
		"auth:\n  user: u\n  password: SECRET\nb:\n  c: 1":       "auth:\n  user: u\n  password: [redacted]\nb:\n  c: 1",
		"if token:\n    use(it)\nelse:\n    pass":                "if token:\n    use(it)\nelse:\n    pass",
		"password: |":            "password: [redacted]",
		"password: |\nuser: u\n": "password: [redacted]\nuser: u\n",
		// URLs and well-known beginnings.
		`https://a.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=SECRET%2Bb%3D&se=1`:          `https://a.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=[redacted]&se=1`,
		`https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=SECRET`:                       `https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=[redacted]`,
		`gpg --verify a.sig; the signature: b`:                                                   `gpg --verify a.sig; the signature: b`,
		`SG.SECRETSECRETSECRETSECR.SECRETSECRETSECRETSECRETSECRETSECRETSECRETS, n`:               `[redacted], n`,
		`curl -d '{"text":"hi"}' https://hooks.slack.com/services/T0SECRET/B0SECRET/SECRET -s`:   `curl -d '{"text":"hi"}' https://hooks.slack.com/services/[redacted] -s`,
		`hooks.slack.com/services/T0SECRET/B0SECRET/SECRET`:                                      `hooks.slack.com/services/[redacted]`,
		`https://discord.com/api/webhooks/1SECRET/SECRET and https://hooks.slack.com/docs/about`: `https://discord.com/api/webhooks/[redacted] and https://hooks.slack.com/docs/about`,
	} {
		if got, _ := new(RedactionRules).redactSecrets(text); got != want {
			t.Errorf("of   %s\nkept %s\nwant %s", text, got, want)
		}
	}
}

// FuzzHarmless holds that nothing is hidden in a text that is not looked at word by word.
func FuzzHarmless(f *testing.F) {
	for _, s := range []string{"fs__read", "0123456789abcdef0123456789abcdef", "--token", "bearer", "password",
		"user:pass@host", "a\tb", `token"x"`, "u@h", "editor 1.2",
		"bearer abcdefgh", "x (Basic abcdefgh", "DIGEST abcdefgh", "bearers abcdefgh", "--token x", "a/-p x",
		"a-token x", "x-----BEGIN KEY----- " + strings.Repeat("MIIEvQ+/", 8), "x-----BEGIN KEY",
		"hooks.slack.com/services/T/B/C", "a?sig=b"} {
		f.Add(s)
	}
	for _, prefix := range strings.Fields(
		"ghp_ github_pat_ sk- rk_live_ xoxb- AKIA AGE-SECRET-KEY- eyJ npm_ hf_ ya29. dbr_ pypi- lin_api_") {
		secret := prefix + strings.Repeat("a", minPrefixedSecret)
		if looksHarmless("[" + secret + "]") {
			f.Errorf("%s passes", secret)
		}
		f.Add(secret)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !looksHarmless(s) {
			return
		}
		p := secretScanner{s: s}
		for p.i < len(s) {
			p.scanWord()
		}
		if p.found || RedactPEMKeys(s, func(int) string { return "" }) != s {
			t.Errorf("something is hidden in %q", s)
		}
	})
}
