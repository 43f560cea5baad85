package audit

import "strings"

// IsSecretName reports whether an argument, variable or header of that name usually holds a secret.
func IsSecretName(name string) bool { return isSecretName(name) }

// isSecretName reports whether a name is usually the name of a secret: apiKey, GITHUB_TOKEN, X-Auth-Token,
// db.password, pin. It compares whole words, so that "author", "keyboard" and "spinner" do not match.
func isSecretName(name string) bool {
	var buf [24]byte
	word := buf[:0]
	long := false
	lower := false // the previous letter was in lower case
	for i := 0; i <= len(name); i++ {
		var c byte
		if i < len(name) {
			c = name[i]
		}
		capital := c >= 'A' && c <= 'Z'
		letter := capital || c >= 'a' && c <= 'z'
		// A word ends at the last letter, and before a capital that follows or precedes a lower-case letter: apiKey,
		// APIKey.
		next := i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'
		if !letter || capital && (lower || next && len(word) > 1) {
			if len(word) > 0 && (isSecretWord(string(word)) || long) {
				return true
			}
			word, long = word[:0], false
		}
		if letter {
			if capital {
				c += 'a' - 'A'
			}
			if len(word) == cap(buf[:]) { // the buffer is full: check the word, then drop its first letter
				long = long || isSecretWord(string(word))
				copy(word, word[1:])
				word = word[:len(word)-1]
			}
			word = append(word, c)
		}
		lower = letter && !capital
	}
	return false
}

// isSecretWord reports whether a word in lower case names a secret. The word may be a compound, such as "pgpassword".
func isSecretWord(word string) bool {
	if len(word) < 3 {
		return false
	}
	if !strings.HasSuffix(word, "ss") {
		word = strings.TrimSuffix(word, "s")
	}
	switch word {
	case "pwd", "pass", "key", "cred", "auth", "private", "pin", "otp", "totp", "cookie", "bearer", "jwt", "pat", "cvv",
		"cvc", "ssn", "mnemonic":
		return true
	}
	if len(word) < len("passw") {
		return false
	}
	for _, end := range [...]string{"password", "passwd", "pwd"} { // PGPASSWORD
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	if strings.HasSuffix(word, "pass") { // SSHPASS, storepass
		return !isOrdinaryPassWord(word)
	}
	for _, part := range [...]string{"passw", "passphrase", "passcode", "token", "secret", "apikey", "accesskey",
		"privatekey", "credential", "authorization", "authentication"} {
		if strings.HasPrefix(word, part) || strings.HasSuffix(word, part) {
			return true
		}
	}
	return false
}

// isOrdinaryPassWord reports whether a word that ends in "pass" is an ordinary word, such as "compass" or "lowpass",
// and not the name of a secret.
func isOrdinaryPassWord(word string) bool {
	for _, end := range [...]string{"bypass", "compass", "surpass", "trespass", "overpass", "underpass", "lowpass",
		"highpass", "bandpass", "allpass", "multipass", "subpass", "renderpass", "boardingpass"} {
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	return false
}
