package talk

import (
	"slices"
	"strings"
)

// beside are the words around one of a secret by which it is none: a count of tokens, the rules for passwords, the key of a map.
type beside struct{ before, after []string }

var (
	harmlessBeside = map[string]beside{
		"password": ofNone("", ""), "passphrase": ofNone("", ""), "secret": ofNone("", "santa"), "credential": ofNone("", ""), "private": ofNone("make keep be is stay", "repo repos repository repositories channel note message room event"),
		"token": ofNone("", ""), "tokens": ofNone("max maximum min minimum total n num number input output prompt completion many count amount", ""),
		"key": ofNone("primary foreign sort partition cache shortcut issue project object public map row hot arrow translation dictionary lookup unique index group",
			"map dictionary entry object row table cache song music setting column pair values points point takeaway takeaways phrase phrases word words result results figure figures finding findings feature features "+
				"date dates people person contact contacts stage signature"),
		"cookie": ofNone("chocolate fortune favourite favorite oatmeal christmas", "recipe recipes flavour flavor flavours flavors dough jar cutter banner consent preferences notice shop"),
		"pin":    ofNone("gpio map drop lapel bowling board", "this it to up board layout colour color"),
		"pass":   ofNone("boarding season ski bus train day guest parking lift", "rate fail mark threshold criteria"),
		"auth":   ofNone("", "method methods mode modes url"), "authentication": ofNone("", "method methods mode modes"), "authorization": ofNone("", "method methods mode modes"),
	}
	// measured are what any secret may have that is none.
	measured = strings.Fields("policy policies count counts limit limits budget budgets usage length size strength manager managers rule rules expiry expiration lifetime ttl name names type types kind kinds label labels")
	// joining stand between a word and what it is of.
	joining = strings.Fields("of in a an the this")
)

func ofNone(before, after string) beside {
	return beside{strings.Fields(before), strings.Fields(after)}
}

// harmless gives a text, between two spaces, without the words that are about no secret.
func harmless(text string) string {
	all := strings.Fields(text)
	var kept []string
	for i := 0; i < len(all); i++ {
		words := besideOf(all[i])
		switch next := across(all, i, 1); {
		case harmlessWord(all[i]):
		case slices.Contains(words.after, at(all, i+1)), secretLike(all[i]) && slices.Contains(measured, at(all, i+1)):
			i++
		case secretLike(all[i]) && slices.Contains([]string{"a", "an", "s"}, at(all, i+1)) && slices.Contains(measured, at(all, i+2)):
			i += 2
		case slices.Contains(words.after, at(all, next)):
			i = next
		case slices.Contains(words.before, at(all, across(all, i, -1))):
		default:
			kept = append(kept, all[i])
		}
	}
	return " " + strings.Join(kept, " ") + " "
}

// harmlessWord says whether a word only begins as that for a secret does.
func harmlessWord(word string) bool {
	return strings.HasPrefix(word, "tokeni") || strings.HasPrefix(word, "secretar") || word == "passwordless"
}

// besideOf finds the words for one, or for several of a kind.
func besideOf(word string) beside {
	if found, ok := harmlessBeside[word]; ok {
		return found
	}
	return harmlessBeside[strings.TrimSuffix(word, "s")]
}

// secretLike says whether a word is one of which a length or a name is no secret.
func secretLike(word string) bool {
	word = strings.TrimSuffix(word, "s")
	return slices.ContainsFunc([]string{"password", "passphrase", "passcode", "token", "secret", "credential", "key", "cookie", "auth", "authentication"}, func(end string) bool {
		return strings.HasSuffix(word, end)
	})
}

// across gives where the next word stands in a direction, past a few that only join.
func across(all []string, i, step int) int {
	const most = 3
	i += step
	for range most {
		if !slices.Contains(joining, at(all, i)) {
			break
		}
		i += step
	}
	return i
}

// at gives a word, "" beyond the ends.
func at(all []string, i int) string {
	if i < 0 || i >= len(all) {
		return ""
	}
	return all[i]
}
