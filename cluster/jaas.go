package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// login is one login module of a JAAS configuration. Its options hold secrets: none of them may appear in an error.
type login struct {
	module  string
	options []option
}

// option is one name="value" of a login module, in the order given.
type option struct{ name, value string }

// jaasToken is a word, a quoted text, or a mark: an equals sign or a semicolon.
type jaasToken struct {
	text   string
	quoted bool
}

// is reports whether the token is the mark given.
func (t jaasToken) is(mark string) bool { return !t.quoted && t.text == mark }

// parseJAAS reads `module flag name="value" …;`. Errors say where it went wrong by counting options, since a name may be a piece of a
// password that was not quoted well.
func parseJAAS(text string) (*login, error) {
	tokens, err := scanJAAS(text)
	if err != nil {
		return nil, err
	}
	if len(tokens) < 3 {
		return nil, errors.New("is not a login module with its options")
	}
	out := &login{module: tokens[0].text}
	switch strings.ToLower(tokens[1].text) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return nil, errors.New("has no control flag after the login module, which is mostly: required")
	}
	rest := tokens[2:]
	for len(rest) > 0 && !rest[0].is(";") {
		if len(rest) < 3 || rest[0].quoted || !rest[1].is("=") || rest[2].is(";") || rest[2].is("=") {
			return nil, fmt.Errorf(`option %d is not of the form name="value"`, len(out.options)+1)
		}
		out.options = append(out.options, option{name: rest[0].text, value: rest[2].text})
		rest = rest[3:]
	}
	switch len(rest) {
	case 0:
		return nil, errors.New("does not end with a semicolon")
	case 1:
		return out, nil
	default:
		return nil, errors.New("has more than one login module, or text after the semicolon")
	}
}

// scanJAAS splits a JAAS configuration into tokens.
func scanJAAS(text string) ([]jaasToken, error) {
	var tokens []jaasToken
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		switch first := text[0]; first {
		case '=', ';':
			tokens = append(tokens, jaasToken{text: text[:1]})
			text = text[1:]
		case '"', '\'':
			value, rest, closed := unquoteJAAS(text[1:], first)
			if !closed {
				return nil, errors.New("has a quotation mark that is not closed")
			}
			tokens = append(tokens, jaasToken{text: value, quoted: true})
			text = rest
		default:
			end := strings.IndexAny(text, " \t\r\n=;\"'")
			if end < 0 {
				end = len(text)
			}
			tokens = append(tokens, jaasToken{text: text[:end]})
			text = text[end:]
		}
	}
	return tokens, nil
}

// unquoteJAAS reads up to the closing quote; a backslash takes the next character as it is, but for the usual n, r and t.
func unquoteJAAS(text string, quote byte) (value, rest string, closed bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case quote:
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
			switch text[i] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}

// apply fills in what the login module says. The module must be the one of the mechanism.
func (l *login) apply(s *SASL) error {
	class := l.module[strings.LastIndexByte(l.module, '.')+1:]
	var fits bool
	var read func(*SASL, option) bool
	switch class {
	case "PlainLoginModule":
		fits, read = s.Mechanism == mechanismPlain, readPlain
	case "ScramLoginModule":
		fits, read = s.Mechanism == mechanismScram256 || s.Mechanism == mechanismScram512, readScram
	case "OAuthBearerLoginModule":
		fits, read = s.Mechanism == mechanismOAuth, readOAuth
	default:
		return fmt.Errorf("the login module %s is not supported, only PlainLoginModule, ScramLoginModule and OAuthBearerLoginModule are", class)
	}
	if !fits {
		return fmt.Errorf("the login module %s does not go with the mechanism %s", class, s.Mechanism)
	}
	for i, o := range l.options {
		if !read(s, o) {
			return fmt.Errorf("option %d is not one that %s understands here, or its value is not valid", i+1, class)
		}
	}
	if u := s.Unsecured; u != nil {
		return u.finish(l.options)
	}
	return nil
}

// readPlain takes an option of PLAIN.
func readPlain(s *SASL, o option) bool {
	switch o.name {
	case "username":
		s.Username = o.value
	case "password":
		s.Password = Secret(o.value)
	default:
		return false
	}
	return true
}

// readScram takes an option of SCRAM.
func readScram(s *SASL, o option) bool {
	if o.name == "tokenauth" {
		s.DelegationToken = strings.EqualFold(o.value, "true")
		return true
	}
	return readPlain(s, o)
}

// readOAuth takes an option of OAUTHBEARER.
func readOAuth(s *SASL, o option) bool {
	if name, ok := cutAny(o.name, "extension_", "unsecuredLoginExtension_"); ok {
		if s.Extensions == nil {
			s.Extensions = map[string]string{}
		}
		s.Extensions[name] = o.value
		return true
	}
	switch o.name {
	case "token":
		s.Token = Secret(o.value)
	case "clientId":
		s.ClientID = o.value
	case "clientSecret":
		s.ClientSecret = Secret(o.value)
	case "scope":
		s.Scope = o.value
	default:
		return readUnsecured(s, o)
	}
	return true
}

// readUnsecured takes an option of Java's login with tokens that nobody signed.
func readUnsecured(s *SASL, o option) bool {
	if !strings.HasPrefix(o.name, "unsecuredLogin") {
		return false
	}
	if s.Unsecured == nil {
		s.Unsecured = &Unsecured{Claims: map[string]any{}}
	}
	u := s.Unsecured
	if name, ok := cutAny(o.name, "unsecuredLoginStringClaim_"); ok {
		u.Claims[name] = o.value
		return true
	}
	if name, ok := cutAny(o.name, "unsecuredLoginNumberClaim_"); ok {
		number, err := strconv.ParseFloat(o.value, 64)
		u.Claims[name] = number
		return err == nil
	}
	if name, ok := cutAny(o.name, "unsecuredLoginListClaim_"); ok {
		if o.value == "" {
			u.Claims[name] = []string{}
			return true
		}
		u.Claims[name] = strings.Split(o.value[1:], o.value[:1]) // the first character says what separates the items
		return true
	}
	switch o.name {
	case "unsecuredLoginLifetimeSeconds":
		seconds, err := strconv.ParseInt(o.value, 10, 32)
		u.Life = time.Duration(seconds) * time.Second
		return err == nil && seconds > 0
	case "unsecuredLoginPrincipalClaimName", "unsecuredLoginScopeClaimName":
		return true // finish looks at the former; the latter only matters to brokers
	}
	return false
}

// finish checks that the token names somebody.
func (u *Unsecured) finish(options []option) error {
	principal := "sub"
	for _, o := range options {
		if o.name == "unsecuredLoginPrincipalClaimName" {
			principal = o.value
		}
	}
	if name, ok := u.Claims[principal].(string); !ok || name == "" {
		return errors.New("has no string claim that names the principal: unsecuredLoginStringClaim_sub")
	}
	return nil
}

// cutAny cuts the first of the prefixes that a non-empty name follows.
func cutAny(text string, prefixes ...string) (string, bool) {
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(text, prefix); ok && rest != "" {
			return rest, true
		}
	}
	return "", false
}
