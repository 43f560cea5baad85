package talk

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/wire"
	"golang.org/x/text/unicode/norm"
)

// sensitive gives the fields of a form that sound like secrets, by their names or titles.
func sensitive(params json.RawMessage) (names []string) {
	seen := map[string]bool{} // a form may have very many
	for m := range wire.Members(wire.Get(params, "requestedSchema", "properties")) {
		name, _ := wire.Text(m.Name)
		if (soundsSecret(name) || soundsSecret(wire.GetText(m.Value, "title"))) && !seen[name] {
			names, seen[name] = append(names, name), true
		}
	}
	return names
}

// secretParts sound like a secret wherever they stand in a name, as they are drawn; secretWords only as whole words: "pin" is none of
// "spinning".
var (
	secretParts = drawnAll(
		"password", "passwd", "token", "secret", "credential", "passphrase", "private", "apikey", "cardnumber", "creditcard", "mnemonic", "seedphrase", "recoveryphrase",
		"passwort", "kennwort", "contrasena", "motdepasse", "senha", "wachtwoord", "haslo", "sifre", "пароль", "密码", "密碼", "パスワード", "暗証番号", "비밀번호", "암호", "पासवर्ड", "كلمةالمرور",
	)
	secretWords = []string{"key", "auth", "authorization", "authentication", "pin", "pass", "otp", "totp", "mfa", "2fa", "cvv", "cvc", "ssn"}
)

// soundsSecret says whether a name has a word of the lists that people are warned of, in whatever letters.
func soundsSecret(name string) bool {
	all := words(name)
	whole := drawn(strings.Join(all, ""))
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(whole, part) }) ||
		slices.ContainsFunc(all, func(word string) bool { return slices.Contains(secretWords, drawn(word)) })
}

// drawnAll gives parts of names as a name that has them is drawn.
func drawnAll(parts ...string) (all []string) {
	for _, part := range parts {
		all = append(all, drawn(strings.Join(words(part), "")))
	}
	return all
}

// drawn gives a text in which letters of other alphabets, and digits, are those of ours that they look like.
func drawn(text string) string { return lookalikes.Replace(text) }

var lookalikes = strings.NewReplacer("а", "a", "α", "a", "с", "c", "ϲ", "c", "ԁ", "d", "е", "e", "ε", "e", "һ", "h", "і", "i", "ι", "i", "ı", "i", "к", "k", "κ", "k", "м", "m",
	"ո", "n", "о", "o", "ο", "o", "օ", "o", "р", "p", "ρ", "p", "ѕ", "s", "т", "t", "τ", "t", "υ", "u", "ѵ", "v", "ν", "v", "ԝ", "w", "ѡ", "w", "х", "x", "χ", "x", "у", "y",
	"γ", "y", "ł", "l", "0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t")

// words splits a name where its writing does: api_key, api-key, apiKey.
func words(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range norm.NFKD.String(name) {
		if unicode.In(r, unicode.Mn, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) {
			continue
		}
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
