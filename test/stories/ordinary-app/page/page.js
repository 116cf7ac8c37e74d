const show = (id, text) => (document.getElementById(id).textContent = text);

localStorage.setItem('visits', String(Number(localStorage.getItem('visits') ?? 0) + 1));

new WebSocket('/live').onmessage = ({ data }) => show('live', data);

const { user, cookies } = await (await fetch('/who')).json();
show('who', `${user}, visit ${localStorage.getItem('visits')}, ${cookies.length} cookies`);
