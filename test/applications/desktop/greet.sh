# A person types a name, and the window becomes green; an empty line, and it is as before.
while :; do
  printf 'Your name: '
  read -r name
  if [ -n "$name" ]; then
    printf '\033]11;#00ff00\007Hello %s!\n' "$name"
  else
    printf '\033]11;#102030\007'
  fi
done
