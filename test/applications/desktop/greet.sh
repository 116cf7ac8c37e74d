# A typed name turns the window green; an empty line restores it.
while :; do
  printf 'Your name: '
  read -r name
  if [ -n "$name" ]; then
    printf '\033]11;#00ff00\007Hello %s!\n' "$name"
  else
    printf '\033]11;#102030\007'
  fi
done
