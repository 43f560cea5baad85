package interop

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// A secretTerm is a term for a secret, with its spaces and without them.
type secretTerm struct{ spaced, joined string }

// secretTerms match anywhere in a name. secretWords match only whole words, so "pin" does not match "spinning".
var (
	secretTerms = sync.OnceValue(func() []secretTerm {
		return secretTermsOf(
			"password", "passwd", "passcode", "token", "secret", "credential", "passphrase", "private key", "api key",
			"card number", "credit card", "connection string", "conn string",
			"mnemonic", "seed phrase", "seed words", "recovery phrase", "recovery words", "recovery key", "backup phrase",
			"maiden name", "security answer",
		)
	})
	// foreignSecretTerms are terms in other languages. Prose that contains one counts as asking for a secret, because
	// the lists of verbs do not cover these languages.
	foreignSecretTerms = sync.OnceValue(func() []secretTerm {
		return secretTermsOf(
			"passwort", "kennwort", "contraseña", "mot de passe", "senha", "wachtwoord", "hasło", "şifre", "пароль", "密码",
			"密碼", "パスワード", "暗証番号", "비밀번호", "암호", "पासवर्ड", "كلمة المرور",
			"bestätigungscode", "código de verificación", "code de vérification", "код подтверждения", "验证码", "驗證碼",
			"認証コード", "인증번호",
		)
	})
	// privateTerms match only in names, because they are common words in sentences.
	privateTerms = secretTermsOf("private")
	secretWords  = []string{"key", "auth", "authorization", "authentication", "pin", "pass", "pwd", "pw", "otp", "totp",
		"mfa", "2fa", "puk", "cvv", "cvv2", "cvc", "ssn", "cookie", "cookies"}
	// proseWords are the secretWords that are not common words in sentences.
	proseWords = []string{"pin", "pwd", "otp", "totp", "mfa", "2fa", "puk", "cvv", "cvv2", "cvc", "ssn"}
)

// secretCodePattern matches names of secrets with the word code, key, number or cookie, such as "login code" or
// "session cookie".
var secretCodePattern = lazyregexp.New(
	` (?:(?:one time|onetime|verification|verify|security|login|log in|logon|sign in|signin|access|auth|authentication|authenticator|authorization|` +
		`sms|2fa|mfa|otp|two factor|unlock|backup|recovery|pass|pin|secret|digit) codes?|(?:pin|security) number|code (?:from|in|out of) (?:your|the|an?|my) (?:\w+ )?(?:sms|text|text message|authenticator|phone|app)|` +
		`code (?:that )?(?:we|i|was|has been|were)? ?(?:just )?(?:sent|texted|emailed|mailed) (?:to )?(?:your?|you)|` +
		`(?:api|access|private|secret|ssh|encryption|security|master|signing|recovery|wallet|your|my) keys?|(?:session|login|auth|browser|http|your) cookies?) `)

// mentionsSecretCode reports whether a text matches secretCodePattern. It uses the pattern only if the text contains "
// code", " key", " cookie" or " number ", because the pattern is slow.
func mentionsSecretCode(text string) bool {
	return (strings.Contains(text, " code") || strings.Contains(text, " key") || strings.Contains(text, " cookie") ||
		strings.Contains(text, " number ")) && secretCodePattern().MatchString(text)
}

// isSecretName reports whether a normalized name or title contains a term for a secret.
func isSecretName(name string) bool {
	text := dropHarmlessWords(name)
	whole, all := strings.ReplaceAll(text, " ", ""), strings.Fields(text)
	for _, list := range [][]secretTerm{secretTerms(), privateTerms, foreignSecretTerms()} {
		joined := func(p secretTerm) bool { return !p.isShort() && strings.Contains(whole, p.joined) }
		// Long texts are not joined, because terms could appear by chance across the words of a sentence.
		if containsTerm(text, list) || len(all) <= maxJoinedWords && slices.ContainsFunc(list, joined) {
			return true
		}
	}
	return containsAnyWord(all, secretWords) || mentionsSecretCode(text)
}

// maxJoinedWords is the maximum number of words in a name that is also examined as one word without spaces, as "pass
// word". Longer names are not examined in this way.
const maxJoinedWords = 4

// asksForSecret reports whether prose asks a person for a secret. It does if a sentence tells the person to type a
// secret, or consists only of the name of a secret. It also does if a sentence asks the person to type "it", and an
// earlier sentence named a secret. A text with one of foreignSecretTerms always counts as asking.
func asksForSecret(prose string) bool { return textAsksForSecret(prose, false) }

// descriptionAsksForSecret is like asksForSecret, for the description of a field. In addition, a description asks for a
// secret if one of its sentences begins with the name of a secret.
func descriptionAsksForSecret(description string) bool { return textAsksForSecret(description, true) }

// maxBareWords is the maximum number of words of a sentence that counts as the name of a secret. beginsWithSecretName
// searches this number of words at the beginning of a sentence.
const maxBareWords = 5

// pauseReplacer replaces punctuation within a sentence by the word "and", so that no pattern matches words on both
// sides of it.
var pauseReplacer = strings.NewReplacer(",", " and ", ":", " and ", "(", " and ", ")", " and ", " - ", " and ", "–",
	" and ", "—", " and ", "，", " and ", "、", " and ", "：", " and ")

func textAsksForSecret(prose string, first bool) bool {
	named := false
	for sentence := range strings.FieldsFuncSeq(prose,
		func(r rune) bool { return strings.ContainsRune(".!?;\n。！？", r) }) {
		text := dropHarmlessWords(normalizeWords(pauseReplacer.Replace(sentence)))
		if containsTerm(text, foreignSecretTerms()) {
			return true
		}
		if named && strings.Contains(text, " it ") && requestVerbs().MatchString(text) {
			return true
		}
		asked := text
		text = withoutSecretAttributes(text)
		all := strings.Fields(text)
		if !namesSecret(text, all) {
			continue
		}
		named = true
		bare := (len(all) <= maxBareWords || first && beginsWithSecretName(text, all) ||
			endsWithSecretName(sentence)) && !statementWords().MatchString(text)
		if bare || requestVerbs().MatchString(asked) && !negatedRequest().MatchString(text) {
			return true
		}
	}
	return false
}

// requestVerbs matches phrases that tell a person to type something. They include phrases of other languages, for texts
// that use the English word for a token or a PIN. statementWords matches words of a sentence that mentions a secret but
// does not ask for it. negatedRequest matches warnings against typing a secret.
var (
	requestVerbs = lazyregexp.New(
		` (?:enter|reenter|type|retype|key in|fill in|paste|insert|input|provide|supply|submit|specify|reply|respond|answer|write|put|tell|send|give|share|need|needs|needed|require|requires|required|` +
			`what is|what was|what s|whats|(?:sign|log) (?:back )?in|(?:login|signin|authenticate|unlock) (?:\w+ ){0,3}(?:with|using|by)|(?:confirm|verify|re confirm) (?:\w+ ){0,3}(?:your|with|by)|(?:set|choose|create|pick) (?:an? )?(?:\w+ )?(?:password|passphrase|passcode|pin)|` +
			`geben|gib|eingeben|anmelden|inserisci|inserire|introduce|introduzca|ingrese|ingresa|escriba|escribe|entrez|saisissez|saisir|tapez|digite|insira|informe|voer|vul|wpisz|podaj|girin|введите|укажите|masukkan) ` +
			`|输入|輸入|入力|입력|提供|ادخل|أدخل`)
	statementWords = lazyregexp.New(
		` (?:how|whether|if|when|where|why|who|is|are|was|were|has|have|had|been|changed|expired?|expires|expiring|updated|saved|revoked|deleted|created|rotated|copied|found|will|never|not|don|no|without|delete|revoke|rotate|` +
			`remove|reset|forgot|which|save|store|remember|keep|show|hide|change|allow|copy|generate|count|list|rename) `)
	negatedRequest = lazyregexp.New(
		` (?:never|not|don t|dont|do not) (?:\w+ ){0,2}(?:enter|type|paste|provide|send|share|tell|give|put|write|need|require|submit)`)
)

// namesSecret reports whether the sentence text contains the name of a secret. all are the words of text.
func namesSecret(text string, all []string) bool {
	return containsTerm(text, secretTerms()) || containsAnyWord(all, proseWords) || mentionsSecretCode(text)
}

// endsWithSecretName reports whether the part of a sentence after its last comma, colon or dash is only a secret's
// name: "To go on: your password".
func endsWithSecretName(sentence string) bool {
	at := strings.LastIndexAny(sentence, ",:—–，、：")
	if at < 0 {
		return false
	}
	text := dropHarmlessWords(normalizeWords(sentence[at:]))
	all := strings.Fields(text)
	return len(all) <= maxBareWords && namesSecret(text, all)
}

// beginsWithSecretName reports whether the name of a secret is among the first maxBareWords words of a sentence.
func beginsWithSecretName(text string, all []string) bool {
	head := all[:min(len(all), maxBareWords)]
	at := secretCodePattern().FindStringIndex(text)
	return at != nil && strings.Count(text[:at[0]+1], " ") <= maxBareWords ||
		namesSecret(" "+strings.Join(head, " ")+" ", head)
}

// withoutSecretAttributes returns a sentence without phrases that refer only to an attribute of a secret, such as "the
// name for the new token".
func withoutSecretAttributes(text string) string {
	var kept []string
	skip := false
	all := strings.Fields(text)
	for i, word := range all {
		switch {
		case skip:
			skip = word != "and" && word != "or" && word != "plus"
		case i+1 < len(all) && slices.Contains(attributeLinkWords, all[i+1]) &&
			(slices.Contains(secretAttributes, word) || slices.Contains(secretAttributes,
				strings.TrimSuffix(word, "s"))):
			skip = true
		}
		if !skip {
			kept = append(kept, word)
		}
	}
	return " " + strings.Join(kept, " ") + " "
}

var (
	secretAttributes = []string{"name", "label", "title", "description", "note", "length", "number", "expiry", "date",
		"scope", "owner", "url", "address", "email", "path", "location", "id", "color", "colour", "icon", "status",
		"type", "kind", "format", "reason", "purpose", "nickname", "user", "username", "file", "day", "time",
		"message", "confirm"}
	attributeLinkWords = []string{"of", "for", "to", "where", "that", "which", "who", "whose", "in", "on"}
)

// containsTerm reports whether a text contains one of the terms, with or without the spaces of the term.
func containsTerm(text string, all []secretTerm) bool {
	return slices.ContainsFunc(all, func(p secretTerm) bool {
		if p.spaced == p.joined {
			return wordContainsTerm(text, p)
		}
		return strings.Contains(text, " "+p.spaced) || strings.Contains(text, p.joined)
	})
}

// wordContainsTerm reports whether a word of a text contains a term; a short term must be at the beginning of the word.
func wordContainsTerm(text string, p secretTerm) bool {
	if p.isShort() {
		return strings.Contains(text, " "+p.joined)
	}
	return strings.Contains(text, p.joined)
}

// isShort reports whether a term has so few Latin letters that other words may contain it by chance.
func (p secretTerm) isShort() bool {
	const few = 6
	return len(p.joined) < few && p.joined[0] < utf8.RuneSelf && p.joined != "token"
}

func containsAnyWord(all, list []string) bool {
	return slices.ContainsFunc(all, func(word string) bool { return slices.Contains(list, word) })
}

// normalizeWords returns the words of a text in lower case and with folded letters, separated by one space. Consecutive
// single letters become one word.
func normalizeWords(text string) string {
	var b strings.Builder
	all := splitNameWords(text)
	for i, word := range all {
		if i > 0 && (utf8.RuneCountInString(word) > 1 || utf8.RuneCountInString(all[i-1]) > 1) {
			b.WriteByte(' ')
		}
		b.WriteString(foldLookalikes(word))
	}
	return b.String()
}

// secretTermsOf normalizes the texts and returns them as terms.
func secretTermsOf(texts ...string) (all []secretTerm) {
	for _, text := range texts {
		p := normalizeWords(text)
		all = append(all, secretTerm{p, strings.ReplaceAll(p, " ", "")})
	}
	return all
}
