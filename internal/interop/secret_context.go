package interop

import (
	"slices"
	"strings"
	"sync"
)

// neighborWords are the words that make a secret term harmless if they stand before it, as in "map key", or after it,
// as in "private repo".
type neighborWords struct{ before, after []string }

var (
	harmlessNeighbors = sync.OnceValue(func() map[string]neighborWords {
		return map[string]neighborWords{
			"password": newNeighborWords("", ""), "passphrase": newNeighborWords("", ""), "secret": newNeighborWords("",
				"santa"), "credential": newNeighborWords("", ""), "private": newNeighborWords("make keep be is stay",
				"repo repos repository repositories channel note message room event"),
			"token": newNeighborWords("", ""),
			"tokens": newNeighborWords(
				"max maximum min minimum total n num number input output prompt completion many count amount", ""),
			"key": newNeighborWords(
				"primary foreign sort partition cache shortcut issue project object public map row hot arrow translation dictionary lookup unique index group",
				"map dictionary entry object row table cache song music setting column pair values points point takeaway takeaways phrase phrases word words result results figure figures finding findings feature features "+
					"date dates people person contact contacts stage signature"),
			"cookie": newNeighborWords("chocolate fortune favourite favorite oatmeal christmas",
				"recipe recipes flavour flavor flavours flavors dough jar cutter banner consent preferences notice shop"),
			"pin": newNeighborWords("gpio map drop lapel bowling board", "this it to up board layout colour color"),
			"pass": newNeighborWords("boarding season ski bus train day guest parking lift",
				"rate fail mark threshold criteria"),
			"auth": newNeighborWords("", "method methods mode modes url"), "authentication": newNeighborWords("",
				"method methods mode modes"), "authorization": newNeighborWords("", "method methods mode modes"),
		}
	})
	// measureWords are words for properties of a secret that are not secret themselves, as in "token count".
	measureWords = strings.Fields(
		"policy policies count counts limit limits budget budgets usage length size strength manager managers rule rules expiry expiration lifetime ttl name names type types kind kinds label labels")
	// joiningWords are words that may stand between a property and the secret, as in "length of the token".
	joiningWords = strings.Fields("of in a an the this")
)

func newNeighborWords(before, after string) neighborWords {
	return neighborWords{strings.Fields(before), strings.Fields(after)}
}

// dropHarmlessWords returns a text without the secret terms that do not refer to a secret. Such terms have a neighbor
// that makes them harmless, or are words such as "secretary". All other words remain, except some of these neighbors.
// The result begins and ends with a space.
func dropHarmlessWords(text string) string {
	all := strings.Fields(text)
	var kept []string
	for i := 0; i < len(all); i++ {
		words := harmlessNeighborsOf(all[i])
		switch next := skipJoiningWords(all, i, 1); {
		case isHarmlessWord(all[i]):
		case slices.Contains(words.after, wordAt(all, i+1)), isSecretLike(all[i]) && slices.Contains(measureWords,
			wordAt(all, i+1)):
			i++
		case isSecretLike(all[i]) && slices.Contains([]string{"a", "an", "s"}, wordAt(all, i+1)) &&
			slices.Contains(measureWords, wordAt(all, i+2)):
			i += 2
		case slices.Contains(words.after, wordAt(all, next)):
			i = next
		case slices.Contains(words.before, wordAt(all, skipJoiningWords(all, i, -1))):
		default:
			kept = append(kept, all[i])
		}
	}
	return " " + strings.Join(kept, " ") + " "
}

// isHarmlessWord reports whether a word only begins like a secret term, as "secretary" does.
func isHarmlessWord(word string) bool {
	return strings.HasPrefix(word, "tokeni") || strings.HasPrefix(word, "secretar") || word == "passwordless"
}

// harmlessNeighborsOf returns the neighbors that make a word, or its singular, harmless.
func harmlessNeighborsOf(word string) neighborWords {
	if found, ok := harmlessNeighbors()[word]; ok {
		return found
	}
	return harmlessNeighbors()[strings.TrimSuffix(word, "s")]
}

// isSecretLike reports whether a word ends with the name of a secret, such as "token" or "tokens". A following word of
// measureWords makes such a word harmless: the length of a token is not secret.
func isSecretLike(word string) bool {
	word = strings.TrimSuffix(word, "s")
	return slices.ContainsFunc([]string{"password", "passphrase", "passcode", "token", "secret", "credential", "key",
		"cookie", "auth", "authentication"}, func(end string) bool {
		return strings.HasSuffix(word, end)
	})
}

// skipJoiningWords returns the index of the next word after the index i in the direction step (1 or -1). It skips at
// most three joining words.
func skipJoiningWords(all []string, i, step int) int {
	const most = 3
	i += step
	for range most {
		if !slices.Contains(joiningWords, wordAt(all, i)) {
			break
		}
		i += step
	}
	return i
}

// wordAt returns the word with the index i; "" for an index out of range.
func wordAt(all []string, i int) string {
	if i < 0 || i >= len(all) {
		return ""
	}
	return all[i]
}
